/** A body of the admin API is read to the letter: what has a fault, or two readings, changes nothing. */
import { test } from 'tap'
import { OPERATOR, startAdmin } from '../../testing/support/admin.ts'
import { codeOf } from '../../testing/support/client.ts'

const BAD_BODIES: readonly (readonly [string, unknown])[] = [
  ['nothing', {}],
  ['an unknown key', { tokenId: 'j', tokenID: 'j' }],
  ['both', { tokenId: 'j', user: 'corp:alice' }],
  ['a token with a time', { tokenId: 'j', before: '2026-01-31T12:00:00Z' }],
  ['a token id that is none', { tokenId: '' }],
  ['a token id with a control', { tokenId: 'a\nb' }],
  ['a token id that is too long', { tokenId: 'x'.repeat(1025) }],
  ['a number', { tokenId: 7 }],
  ['a user without an issuer', { user: 'alice' }],
  ['a user without a colon', { user: 'corpx' }],
  ['a user without a subject', { user: 'corp:' }],
  ['a user of no issuer', { user: ':alice' }],
  ['a user of an unknown issuer', { user: 'crop:alice' }],
  ['a user of an issuer in capitals', { user: 'Corp:alice' }],
  ['a list of users', { user: ['corp:alice'] }],
  ['nobody', { user: 'anonymous' }],
  ['a time without a zone', { user: 'corp:alice', before: '2026-01-31T12:00:00' }],
  ['a date alone', { user: 'corp:alice', before: '2026-01-31' }],
  ['a day that is none', { user: 'corp:alice', before: '2026-02-30T12:00:00Z' }],
  ['a time after the year 9999', { user: 'corp:alice', before: '9999-12-31T23:59:00-00:01' }],
  ['an hour that is none', { user: 'corp:alice', before: '2026-01-31T25:00:00Z' }],
  ['a time in words', { user: 'corp:alice', before: 'now' }],
  ['a number for a time', { user: 'corp:alice', before: 1769860800000 }],
  ['null for a time', { user: 'corp:alice', before: null }],
  ['a list', [{ tokenId: 'j' }]],
  ['a text', 'j'],
]

void test('a body that is not to the letter changes nothing, and the answer says what to write', async (t) => {
  const { ask, store, audit } = await startAdmin(t)
  for (const [name, body] of BAD_BODIES) {
    const answer = await ask('/revocations', { body })
    t.same([answer.status, codeOf(answer)], [400, 'body-malformed'], name)
    t.match(answer.json, { error: /tokenId|user|before|issuer/, message: /./ }, name)
    t.notMatch(answer.text, /crop|Corp|alice/, 'and nothing of what was written')
  }
  t.same(await store.revocations(), [])
  t.equal(audit().filter(({ action, outcome }) => action === 'revoke' && outcome === 'body-malformed').length, BAD_BODIES.length)
})

const SENT = { 'content-type': 'application/json' }

void test('bytes with two readings, too many of them, or of another type are refused', async (t) => {
  const { url, ask, store, list } = await startAdmin(t)
  const send = async (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = SENT) => {
    const answer = await fetch(`${url}/revocations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR}`, ...headers },
      body,
    })
    return `${answer.status} ${((await answer.json()) as { code: string }).code}`
  }
  t.equal(await send('{"tokenId":"a","tokenId":"b"}'), '400 body-malformed')
  t.equal(await send('{"tokenId":"a","__proto__":{}}'), '400 body-malformed')
  t.equal(await send('{"tokenId":"a"} x'), '400 body-malformed')
  t.equal(await send(Uint8Array.of(0x7b, 0x22, 0xff)), '400 body-malformed')
  t.equal(await send(''), '400 body-malformed')
  t.equal(await send(`{"tokenId":"a"}${' '.repeat(5000)}`), '413 body-too-large')
  t.equal(await send('{"tokenId":"a"}', { 'content-type': 'text/plain' }), '415 media-type-unsupported')
  t.equal(await send('tokenId=a', { 'content-type': 'application/x-www-form-urlencoded' }), '415 media-type-unsupported')
  await ask('/revocations', { body: { tokenId: 'j' } })
  const lifting = await ask('/revocations/token/j', { method: 'DELETE', body: { tokenId: 'k' } })
  t.equal(codeOf(lifting), 'body-malformed', 'a body where none belongs')
  t.same((await store.revocations()).length, 1)
  t.equal(list.current().length, 1)
})
