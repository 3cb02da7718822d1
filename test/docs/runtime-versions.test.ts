/** docs/reference/runtime-versions.md has what is recorded of the tested versions, all of which the gateway knows. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ROUTES } from '../../src/core/route/routes.ts'
import { NEWEST_TESTED, TESTED_RUNTIMES } from '../../src/core/route/runtime-version.ts'
import { INFO_FIELDS, missingIn, nameOf, unknownIn } from '../../testing/contract/known.ts'
import { renderPage } from '../../testing/contract/page.ts'
import { readRecorded } from '../../testing/contract/recorded.ts'
import { ROOT } from './markdown.ts'

const RECORDED = readRecorded()
const NEWEST = RECORDED.at(-1)!

void test('the page is that of the recorded contracts, and they are of the tested versions', (t) => {
  t.equal(readFileSync(join(ROOT, 'docs/reference/runtime-versions.md'), 'utf8'), renderPage(RECORDED))
  t.same(
    RECORDED.map(({ version }) => version),
    TESTED_RUNTIMES,
  )
  t.end()
})

void test('the versions in package.json are pinned, and are the tested ones', (t) => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'examples/runtimes/package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>
  }
  const between = TESTED_RUNTIMES.slice(1, -1)
  t.same(dependencies, Object.fromEntries(between.map((version) => [`runtime-${version}`, `npm:@copilotkit/runtime@${version}`])))
  const lock = readFileSync(join(ROOT, 'examples/runtimes/package-lock.json'), 'utf8')
  t.notMatch(lock, '"resolved"', 'no registry is named')
  t.end()
})

void test('the gateway knows all of each, and nothing that every runtime has is missing', (t) => {
  for (const contract of RECORDED) t.same([unknownIn(contract), missingIn(contract)], [[], []], contract.version)
  t.end()
})

void test('every route of the gateway is one of the newest version, with its body keys', (t) => {
  for (const route of ROUTES) {
    const facts = NEWEST.routes.find((one) => nameOf(one) === `${route.method} ${route.path.join('/')}`)
    t.ok(facts, `${route.method} ${route.id}`)
    // Clients of AG-UI 1.0 send it, and this runtime does not read it.
    const unread = route.body.keys.filter((key) => facts?.bodyKeys.includes(key) !== true && key !== 'protocolVersion')
    t.same(unread, [], route.id)
  }
  t.same(Object.keys(INFO_FIELDS).toSorted(), NEWEST.infoFields.toSorted())
  t.end()
})

void test('what every runtime has and is not found is named', (t) => {
  const empty = { ...NEWEST, routes: [], envelopeMethods: [], envelopeKeys: [], infoFields: [] }
  const missing = missingIn(empty)
  for (const what of [
    'the route POST agent/:agentId/run',
    'the key of a run threadId',
    'the envelope method info',
    'the field of /info version',
  ]) {
    t.ok(missing.includes(what), what)
  }
  t.equal(NEWEST.version, NEWEST_TESTED)
  t.end()
})
