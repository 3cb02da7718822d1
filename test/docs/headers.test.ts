/** docs/reference/headers.md names the headers that the gateway rejects and drops. */
import { test } from 'tap'
import { BUILT_IN, forwardedAnswerHeaders, forwardingFault, settingFault } from '../../src/core/wire/headers.ts'
import { page, rows, section } from './markdown.ts'

const PAGE = page('docs/reference/headers.md')

const quoted = (text: string): readonly string[] => Array.from(text.matchAll(/`([a-z_*-]+)`/g), ([, name = '']) => name)
const example = (name: string): string => name.replace(/[-*]+$/, '-example')

void test('the built-in headers', (t) => {
  const [[first = ''] = []] = rows(section(PAGE, 'From the caller to the upstream'))
  t.same(quoted(first), BUILT_IN)
  t.end()
})

void test('each name that forwardHeaders rejects', (t) => {
  const names = rows(section(PAGE, 'Names that `forwardHeaders` rejects')).flatMap(([cell = '']) => quoted(cell))
  const rejected = names.filter((name) => name !== '_' && name !== 'x-')
  t.ok(rejected.length > 25)
  for (const name of rejected) t.not(forwardingFault(example(name), []), null, name)
  t.not(forwardingFault('x_user', []), null)
  t.not(forwardingFault('x-own', ['X-Own']), null)
  t.equal(forwardingFault('x-tenant', []), null)
  t.end()
})

void test('each name that upstream.headers rejects', (t) => {
  for (const name of quoted(section(PAGE, 'Names that `upstream.headers` rejects'))) t.not(settingFault(name), null, name)
  t.not(settingFault('keep-alive'), null)
  t.equal(settingFault('authorization'), null)
  t.end()
})

void test('each header of a response that the gateway drops or sets', (t) => {
  const [dropped = '', set = ''] = section(PAGE, 'From the upstream to the caller').split('The gateway sets:')
  const names = rows(dropped)
    .flatMap(([, cell = '']) => quoted(cell))
    .filter((name) => name !== 'connection')
    .map((name) => (name === 'cdn-cache-control' ? 'my-cdn-cache-control' : example(name)))
  t.ok(names.length > 15)
  const sent = { ...Object.fromEntries(names.map((name) => [name, 'x'])), 'x-kept': 'x' }
  t.same(forwardedAnswerHeaders(sent, 'stream'), {
    'x-kept': 'x',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  t.same(forwardedAnswerHeaders({}, 'plain'), { 'cache-control': 'private, no-store' })
  for (const value of ['private, no-store', 'no-cache, no-transform', 'x-accel-buffering: no']) t.match(set, value)
  t.end()
})
