/** The harness for commands of pages runs what a page says, and finds what is wrong in it. */
import { test } from 'tap'
import { startUpstream, INFO, json } from '../../testing/support/upstream.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { blocksOf, fileOf, isPrinted, runBlocks, runSection } from './commands.ts'

const PAGE = {
  name: 'a page',
  text: `# A page

Write \`threadwarden.yaml\`:

\`\`\`yaml
version: 1
upstream:
  url: http://127.0.0.1:4000
  basePath: /api/copilotkit
authentication:
  issuers:
    corp: { issuer: https://login.example.com/, audiences: [chat], algorithms: [HS256], secretFile: secret }
ownership: { store: "sqlite:./ownership.db", unknownThread: claim }
\`\`\`

Add to \`threadwarden.yaml\`:

\`\`\`yaml
ownership: { unknownThread: deny }
\`\`\`

## Start

\`\`\`sh
export WHERE="$PWD"
URL=http://127.0.0.1:8080/api/copilotkit
mkdir -p deeper
cd deeper
\`\`\`

\`\`\`sh
cd ..
[ "$PWD" = "$WHERE" ]
threadwarden serve --config threadwarden.yaml
\`\`\`

1. In a list:

   \`\`\`sh
   curl -s $URL/info
   \`\`\`

   \`\`\`json
   {
     "error": "Sign in: …",
     …
     "code": "credential-missing"
   }
   \`\`\`

\`\`\`console
$ echo http://127.0.0.1:8081 \\
  "$WHERE/x"
http://127.0.0.1:8081 /srv/chat/x
$ grep -c deny threadwarden.yaml
1
\`\`\`

## Stop

\`\`\`sh
false
\`\`\`
`,
}

void test('a page is followed from its first to its last block', async (t) => {
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.answer(json(INFO))
  const { ran } = await runBlocks(t, PAGE, {
    replace: { 'http://127.0.0.1:4000': upstream.url },
    files: { secret: 'x'.repeat(64) },
    exits: { false: 1 },
  })
  t.equal(ran.length, 6)
})

void test('a section is run without the others', async (t) => {
  const { ran } = await runSection(t, PAGE, 'Stop', { exits: { false: 1 } })
  t.equal(ran.length, 1)
  t.throws(() => runSection(t, PAGE, 'Pause'), /no block below "Pause"/)
})

void test('a server in the background of a block is waited for, and a second start ends the first', async (t) => {
  const text = `
\`\`\`sh
serve() { echo up; sleep 1000; }
serve &
echo "$! is its id"
\`\`\`

\`\`\`sh
echo up && sleep 1000
\`\`\`

\`\`\`sh
echo up && sleep 1000
\`\`\`
`
  const { ran } = await runBlocks(t, { name: 'servers', text }, { servers: [[/^serve &|^echo up/, /up/]] })
  t.match(ran[0]?.output, /\d+ is its id/)
  t.equal(ran.length, 3)
})

void test('what a page prints is compared with the output', (t) => {
  t.ok(isPrinted('one\ntwo\nthree\n', 'one\n…\nthree'))
  t.ok(isPrinted('one\ntwo\n', '…\ntwo\n'))
  t.ok(isPrinted('one\n', 'one\n…\n'))
  t.ok(isPrinted('took 12 ms, a.b', 'took 7 ms, a…'))
  t.ok(isPrinted('at 2026-01-02T03:04:05.678Z for eyJhbGc.eyJzdWI.c2ln', 'at 2025-12-31T00:00:00Z for eyJ…'))
  t.ok(isPrinted('{"a":1,"b":[2]}', '{\n  "a": 1,\n  …\n}'))
  t.ok(isPrinted('{"a":1,"b":[2]}', '{ "a": 1, "b": [2] }'))
  t.ok(isPrinted('{"a":1,"b":[2]}', '{"a":1,…}'))
  t.notOk(isPrinted('{"a":1}', '{ "a": 2 }'))
  t.notOk(isPrinted('one\ntwo\n', 'one'))
  t.notOk(isPrinted('one\n', 'one\ntwo'))
  t.notOk(isPrinted('axb', 'a.b'))
  t.end()
})

void test('a block is a file only if its paragraph says so', (t) => {
  const file = (paragraph: string) => fileOf({ ...blocksOf(PAGE)[0]!, paragraph })
  t.same(file('Write `policy.yaml`:'), { name: 'policy.yaml', isPart: false })
  t.same(file('Stop it. Save this as `tests/chat.test.yaml`:'), { name: 'tests/chat.test.yaml', isPart: false })
  t.same(file('`run.json`:'), { name: 'run.json', isPart: false })
  t.same(file('Add to `threadwarden.yaml`:'), { name: 'threadwarden.yaml', isPart: true })
  t.equal(file('Write `policy.yaml`.'), null)
  t.equal(file('A rule in `policy.yaml` has this form:'), null)
  t.equal(file('Replace `a.yaml` by `b.yaml`:'), null)
  t.end()
})
