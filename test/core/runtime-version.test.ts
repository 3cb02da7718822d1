/** What is read from the text that a runtime calls its version. */
import { test } from 'tap'
import {
  agentHeadersWin,
  forwardedToAgents,
  isLikeNewest,
  NEWEST_TESTED,
  testedState,
  TESTED_RUNTIMES,
  versionNumbers,
} from '../../src/core/route/runtime-version.ts'

void test('the form of a version', (t) => {
  t.same(versionNumbers('1.75.0'), [1, 75, 0])
  t.same(versionNumbers('1.76.0-next.1+build'), [1, 76, 0])
  for (const text of [
    '',
    '1',
    '1.75',
    'v1.75.0',
    '1.75.0 ',
    '1.75.0\n',
    '1.75.0"',
    '1.75.0-',
    '1.75.0-a b',
    '01234567.1.1',
    '١.٢.٣',
  ]) {
    t.equal(versionNumbers(text), null, JSON.stringify(text))
    t.equal(testedState(text), 'unknown', JSON.stringify(text))
    t.equal(agentHeadersWin(text), null, JSON.stringify(text))
  }
  t.end()
})

void test('the tested versions are in order, and the last one is the newest', (t) => {
  const sorted = TESTED_RUNTIMES.toSorted((one, other) => one.localeCompare(other, 'en', { numeric: true }))
  t.same([...TESTED_RUNTIMES], sorted)
  t.equal(NEWEST_TESTED, sorted.at(-1))
  for (const version of TESTED_RUNTIMES) t.equal(testedState(version), 'yes')
  t.end()
})

void test('newer, tested, or neither', (t) => {
  for (const version of ['1.75.1', '1.76.0', '1.100.0', '2.0.0', '1.76.0-next.1']) t.equal(testedState(version), 'newer', version)
  for (const version of ['1.75.0-next.1', '1.62.9', '1.54.0']) t.equal(testedState(version), 'yes', version)
  for (const version of ['1.53.0', '1.60.1', '1.74.0', '0.75.0', '1.5.4']) t.equal(testedState(version), 'no', version)
  t.same(['1.75.3', '1.7.5', '1.750.0', '1.74.0'].map(isLikeNewest), [true, false, false, false])
  t.end()
})

void test('whose headers win at an agent', (t) => {
  for (const version of ['1.54.1', '1.62.2', '0.99.99']) t.equal(agentHeadersWin(version), false, version)
  for (const version of ['1.62.3', '1.63.0', '2.0.0', '1.100.0']) t.equal(agentHeadersWin(version), true, version)
  t.same(forwardedToAgents(['X-Tenant', 'accept-charset', 'x-a', 'ax-b']), ['X-Tenant', 'x-a'])
  t.end()
})
