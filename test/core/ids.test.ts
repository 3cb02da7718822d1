/** The grammars of ids: what passes means the same to the gateway, the store and the upstream. */
import { test } from 'tap'
import { isAgentId, isMemoryId, isRunId, isThreadId, isUserId, ROUTE_WORDS } from '../../src/core/route/ids.ts'
import { ROUTES } from '../../src/core/route/routes.ts'

const UUID = '0f6f1a52-7a2b-4c3d-8e9f-00112233aabb'

void test('thread ids', (t) => {
  for (const id of ['a', 'T-1', 'a.b_c:d-e', UUID, 'x'.repeat(128), '0', 'threads2', 'info.x', 'deadbeef'])
    t.ok(isThreadId(id), id)
  const bad = ['', '-a', '.a', 'a.', 'a/b', 'a b', ' a', 'a\n', 'é', 'x'.repeat(129), 'a%2f', '..', 'a#', 'a?', 'a\\b', '__proto__', 1, null, undefined, ['a'], {}] // oxfmt-ignore
  for (const id of bad) t.notOk(isThreadId(id), JSON.stringify(id))
  t.end()
})

void test('a UUID has one spelling', (t) => {
  for (const id of [
    UUID.toUpperCase(),
    UUID.replaceAll('-', ''),
    `urn:uuid:${UUID}`,
    `URN:UUID:${UUID}`,
    `${UUID}-`,
    UUID.replace('-', ''),
    UUID.replace('0f6f', '0F6f'),
    // Python's uuid.UUID.
    `urn:${UUID}`,
    `uuid:${UUID}`,
    `uuid:urn:${UUID}`,
    `uurn:uid:${UUID}`,
    UUID.replace('-8e9f-', '-8e9f-urn:'),
    `0_${UUID.replaceAll('-', '').slice(2)}`,
    `0x${UUID.replaceAll('-', '').slice(2)}`,
    // Java's and .NET's: leading zeros left out, 0x in a group.
    UUID.slice(1),
    '1-2-3-4-5',
    UUID.replace('-4c3d-', '-3d-'),
    UUID.replace('-7a2b-', '-0x2b-'),
    // Go's: the middle 36 of 38.
    `x${UUID}y`,
    `9${UUID.toUpperCase()}_`,
  ]) {
    t.notOk(isThreadId(id), id)
  }
  t.end()
})

void test('what no parser takes for a UUID may be a thread id, however much it looks like one', (t) => {
  for (const id of [
    '0'.repeat(31),
    'f'.repeat(33),
    `x${'0'.repeat(32)}`,
    `${'0'.repeat(32)}x`,
    '1-2-3-4',
    '1-2-3-4-5-6',
    '1-2-3-4-x',
    `${'0'.repeat(31)}g`,
    `g${'0'.repeat(31)}`,
    `xy${UUID}`,
    `x0${'0'.repeat(30)}`,
    '2026-11-21',
  ])
    t.ok(isThreadId(id), id)
  t.end()
})

// oxfmt-ignore
const WORDS = [
  'agent', 'annotate', 'archive', 'clear', 'connect', 'cpk-debug-events', 'events', 'info', 'inspector-learning',
  'inspector-metadata', 'memories', 'messages', 'recall', 'run', 'state', 'stop', 'subscribe', 'suggest', 'threads', 'transcribe',
]

void test('the words that the router gives a meaning are those of the table of routes', (t) => {
  t.strictSame([...ROUTE_WORDS].sort(), WORDS)
  const inPaths = ROUTES.flatMap((row) => row.path.filter((word) => !word.startsWith(':')))
  t.strictSame([...new Set(inPaths)].sort(), WORDS)
  t.end()
})

void test('no thread is called as a route is, in any case; of agents only "agent" may be', (t) => {
  for (const word of WORDS) {
    for (const spelling of [word, word.toUpperCase(), word[0]!.toUpperCase() + word.slice(1)]) {
      t.notOk(isThreadId(spelling), spelling)
      t.notOk(isMemoryId(spelling), spelling)
      if (spelling !== 'agent') t.notOk(isAgentId(spelling), spelling)
    }
  }
  t.ok(isAgentId('agent'))
  t.end()
})

void test('agent ids have no colon and no name that every object has', (t) => {
  for (const id of ['default', 'a', 'a.b', UUID.toUpperCase()]) t.ok(isAgentId(id), id)
  for (const id of ['a:b', 'constructor', 'toString', 'valueOf', 'hasOwnProperty', '__proto__', '', 'a/b', null])
    t.notOk(isAgentId(id), String(id))
  t.end()
})

void test('memory ids and run ids have the characters of a thread id; a run may be called anything of these', (t) => {
  for (const id of ['m1', 'a.b_c:d-e', UUID, UUID.toUpperCase(), 'x'.repeat(128)]) {
    t.ok(isMemoryId(id), id)
    t.ok(isRunId(id), id)
  }
  for (const id of ['', '-a', 'a.', 'a/b', 'a b', 'x'.repeat(129), 5, null, undefined, ['a'], { length: 1 }]) {
    t.notOk(isMemoryId(id), JSON.stringify(id))
    t.notOk(isRunId(id), JSON.stringify(id))
  }
  t.ok(isRunId('clear'), 'a run id stands in no path')
  t.end()
})

void test('user ids are 1 to 255 characters without controls or lone surrogates, never trimmed', (t) => {
  for (const id of ['alice', 'a:b', ' alice ', 'é', '💬'.repeat(255), 'x'.repeat(255)]) t.ok(isUserId(id), id.slice(0, 10))
  for (const id of ['', 'x'.repeat(256), '💬'.repeat(256), 'a\u0000', 'a\n', '\u007f', '\u0085', '\ud800', 5, null, ['a']]) t.notOk(isUserId(id), JSON.stringify(id).slice(0, 12)) // oxfmt-ignore
  t.end()
})
