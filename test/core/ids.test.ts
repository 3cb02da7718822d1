/** The grammars of ids: what passes means the same to the gateway, the store and the upstream. */
import { test } from 'tap'
import { isAgentId, isMemoryId, isThreadId, isUserId, ROUTE_WORDS } from '../../src/core/ids.ts'

const UUID = '0f6f1a52-7a2b-4c3d-8e9f-00112233aabb'

void test('thread ids', (t) => {
  for (const id of ['a', 'T-1', 'a.b_c:d-e', UUID, 'x'.repeat(128), '0', 'threads2', 'info.x', 'deadbeef'])
    t.ok(isThreadId(id), id)
  const bad = ['', '-a', '.a', 'a.', 'a/b', 'a b', ' a', 'a\n', 'é', 'x'.repeat(129), 'a%2f', '..', 'a#', 'a?', 'a\\b', '__proto__', 1, null, undefined, ['a'], {}] // prettier-ignore
  for (const id of bad) t.notOk(isThreadId(id), JSON.stringify(id))
  t.end()
})

void test('a UUID has one spelling', (t) => {
  for (const id of [
    UUID.toUpperCase(),
    UUID.replaceAll('-', ''),
    `urn:uuid:${UUID}`,
    `URN:UUID:${UUID}`,
    UUID.replace('-', ''),
    UUID.replace('0f6f', '0F6f'),
  ]) {
    t.notOk(isThreadId(id), id)
  }
  t.end()
})

void test('no thread is called as a route is, in any case; of agents only "agent" may be', (t) => {
  for (const word of ROUTE_WORDS) {
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
  for (const id of ['default', 'a.b', UUID.toUpperCase()]) t.ok(isAgentId(id), id)
  for (const id of ['a:b', 'constructor', 'toString', 'valueOf', 'hasOwnProperty', '__proto__', '', 'a/b', null])
    t.notOk(isAgentId(id), String(id))
  t.end()
})

void test('user ids are 1 to 255 characters without controls or lone surrogates, never trimmed', (t) => {
  for (const id of ['alice', 'a:b', ' alice ', 'é', '💬'.repeat(255), 'x'.repeat(255)]) t.ok(isUserId(id), id.slice(0, 10))
  for (const id of ['', 'x'.repeat(256), '💬'.repeat(256), 'a\u0000', 'a\n', '\u007f', '\u0085', '\ud800', 5, null, ['a']]) t.notOk(isUserId(id), JSON.stringify(id).slice(0, 12)) // prettier-ignore
  t.end()
})
