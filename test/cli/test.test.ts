/** `threadwarden test`: 0 where all pass, 1 where one fails or a file is invalid; with JUnit for build servers. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ROOT } from '../docs/markdown.ts'
import { run } from './in-process.ts'
import { configFile } from '../../testing/support/program.ts'

const PEOPLE = `version: 1
principals:
  alice: { issuer: corp, id: alice }
  bob: { issuer: corp, id: bob }
threads:
  alices: { owner: alice }
tests:
`
const PASSING = `${PEOPLE}  - { name: alice reads, as: alice, route: threads/messages, thread: alices, expect: permitted }
  - { name: her list, as: alice, lists: [alices] }
`
const FAILING = `${PEOPLE}  - { name: 'bob <reads> & "more"', as: bob, route: threads/messages, thread: alices, expect: permitted }
  - { name: his list, as: bob, lists: [alices] }
`

function files(t: Parameters<typeof configFile>[0], texts: Readonly<Record<string, string>>) {
  const { file, folder } = configFile(t)
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text)
  const paths = Object.keys(texts).map((name) => join(folder, name))
  return { file, folder, paths, tested: (...more: string[]) => run(t, ['test', '--config', file, ...paths, ...more]) }
}

void test('all pass', async (t) => {
  const { paths, tested } = files(t, { 'a.yaml': PASSING })
  const { code, stdout, stderr } = await tested()
  t.same({ code, stderr }, { code: 0, stderr: '' })
  t.equal(stdout, `${paths[0]}\n  ok  alice reads\n  ok  her list\n2 passed, 0 failed\n`)
})

void test('what fails is told with what came, and by which rule', async (t) => {
  const { tested } = files(t, { 'a.yaml': PASSING, 'b.yaml': FAILING })
  const plain = await tested()
  t.equal(plain.code, 1)
  t.match(
    plain.stdout,
    / {2}not ok {2}bob <reads> & "more" \(line 8\)\n +bob, threads\/messages \(GET\), alices: expected permitted; got refused: 403 not-owner \(thread-foreign\); allow "threads" \(line \d+\): does not match: thread is foreign, rule covers own, shared\n/,
  )
  t.match(plain.stdout, /bob: expected a list of alices; got nothing: alices refused: 403 not-owner/)
  t.match(plain.stdout, /\n2 passed, 2 failed\n$/)
  const data = await tested('--json')
  t.match(JSON.parse(data.stdout), {
    passed: 2,
    failed: 2,
    files: [{ results: [{ name: 'alice reads', failures: [] }] }, { results: [{ line: 8, failures: [String] }] }],
  })
})

void test('JUnit is written beside', async (t) => {
  const { folder, tested } = files(t, { 'a.yaml': PASSING, 'b.yaml': FAILING, 'c.yaml': 'version: 2\n' })
  const junit = join(folder, 'junit.xml')
  t.equal((await tested('--junit', junit)).code, 1)
  const xml = readFileSync(junit, 'utf8')
  t.match(xml, /<testsuite name=".*a\.yaml" tests="2" failures="0" errors="0">/)
  t.match(xml, /<testsuite name=".*b\.yaml" tests="2" failures="2" errors="0">/)
  t.match(xml, /<testsuite name=".*c\.yaml" tests="1" failures="0" errors="1">/)
  t.match(xml, /<testcase name="bob &lt;reads&gt; &amp; &quot;more&quot;"/)
  t.match(await tested('--junit', join(folder, 'nowhere', 'junit.xml')), { code: 1, stderr: /--junit .* cannot be written/ })
})

void test('an invalid file is told with its line, and the others are run', async (t) => {
  const { tested } = files(t, { 'a.yaml': PASSING, 'bad.yaml': PASSING.replace('as: alice, lists', 'as: alcie, lists') })
  const { code, stdout } = await tested()
  t.equal(code, 1)
  t.match(stdout, /error {2}.*bad\.yaml:9: tests\.1\.as: alcie is not a principal \(under principals: alice, bob\)\n/)
  t.match(stdout, /\n2 passed, 0 failed, 1 of 2 files invalid\n$/)
})

void test('a huge file is not read', async (t) => {
  const { tested } = files(t, { 'huge.yaml': `${PASSING}${'#'.repeat(4 * 1024 * 1024)}` })
  t.match(await tested(), { code: 1, stdout: /huge\.yaml: is larger than 4MiB \(write several files\)/ })
})

void test('without a test file it is wrong usage', async (t) => {
  const { file } = configFile(t)
  t.match(await run(t, ['test', '--config', file]), { code: 2, stdout: '', stderr: /name a test file/ })
})

void test('the policies that are shipped pass their tests', async (t) => {
  const folder = join(ROOT, 'policies/tests')
  const { file } = configFile(t)
  const { code, stdout } = await run(t, ['test', '--config', file, ...readdirSync(folder).map((name) => join(folder, name))])
  t.equal(code, 0, stdout)
})
