/** A body that two parsers could read differently is refused; what passes has one reading left. */
import { test } from 'tap'
import { call, codeOf } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { events } from '../support/upstream.ts'

/** Sends bytes as JSON to the run route. */
async function send(base: string, token: string, body: string | Uint8Array) {
  const answer = await fetch(`${base}/agent/default/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: body as string,
  })
  const { code } = (await answer.json().catch(() => ({}))) as { code?: string }
  return { status: answer.status, code }
}

const nested = (depth: number): string => `{"threadId":"t1","state":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`

const MALFORMED: Record<string, string | Uint8Array> = {
  nothing: ' ',
  half: '{"threadId":"t1"',
  'trailing bytes': '{"threadId":"t1"}x',
  'a second value': '{"threadId":"t1"}{"threadId":"t2"}',
  'a trailing null byte': '{"threadId":"t1"}\u0000',
  'a byte order mark': '\ufeff{"threadId":"t1"}',
  'an array': '[{"threadId":"t1"}]',
  'a string': '"t1"',
  null: 'null',
  'single quotes': "{'threadId':'t1'}",
  'a comment': '{"threadId":"t1"/* */}',
  'a trailing comma': '{"threadId":"t1",}',
  NaN: '{"threadId":"t1","state":NaN}',
  'a number beyond range': '{"threadId":"t1","state":1e999}',
  'the id twice': '{"threadId":"t1","threadId":"t2"}',
  'the id twice, once escaped': '{"threadId":"t1","\\u0074hreadId":"t2"}',
  'a key twice deep inside': '{"threadId":"t1","state":{"a":[{"b":1,"\\u0062":2}]}}',
  __proto__: '{"threadId":"t1","__proto__":{"threadId":"t2"}}',
  '__proto__ escaped': '{"threadId":"t1","\\u005f_proto__":{}}',
  '__proto__ deep inside': '{"threadId":"t1","state":[{"__proto__":1}]}',
  'deep nesting': nested(129),
  'very deep nesting': nested(200_000),
  'bytes that are no UTF-8': Buffer.concat([Buffer.from('{"threadId":"t'), Buffer.from([0xff]), Buffer.from('"}')]),
  'UTF-8 in more bytes than needed': Buffer.concat([Buffer.from('{"threadId":"t'), Buffer.from([0xc0, 0xaf]), Buffer.from('"}')]),
  'half a surrogate pair in UTF-8': Buffer.concat([
    Buffer.from('{"state":"'),
    Buffer.from([0xed, 0xa0, 0x80]),
    Buffer.from('"}'),
  ]),
  'UTF-16': Buffer.from('{"threadId":"t1"}', 'utf16le'),
}

void test('bodies with more than one reading are 400 body-malformed and nothing arrives', async (t) => {
  const { base, alice, upstream } = await gated(t)
  for (const [name, body] of Object.entries(MALFORMED)) {
    t.same(await send(base, alice, body), { status: 400, code: 'body-malformed' }, name)
  }
  t.same(upstream.requests, [])
})

void test('what passes is written anew', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  t.equal((await send(base, alice, ' { "state" : {"\\u0061" : 1.0e1, "ü":"\\u00fc"},\n"\\u0074hreadId":"t1" } ')).status, 200)
  t.equal(upstream.requests[0]?.body.toString('utf8'), '{"state":{"a":10,"ü":"ü"},"threadId":"t1"}')
  t.equal((await send(base, alice, nested(128))).status, 200, 'the deepest that passes')
})

void test('a thread id that is missing, of another type or outside the grammar is 400 thread-id-invalid', async (t) => {
  const { base, alice, upstream } = await gated(t)
  for (const id of [
    undefined,
    null,
    1,
    true,
    '',
    ' ',
    ['t1'],
    { id: 't1' },
    'a/b',
    '../a',
    't1 ',
    'clear',
    'Info',
    'x'.repeat(129),
    't1.',
    '-a',
  ]) {
    for (const path of ['agent/default/run', 'agent/default/connect', 'agent/default/suggest', 'annotate']) {
      const answer = await call(`${base}/${path}`, { token: alice, body: { threadId: id, type: 'x' } })
      t.equal(answer.status, 400, `${path} ${JSON.stringify(id)}`)
      t.equal(codeOf(answer), 'thread-id-invalid')
    }
  }
  t.same(upstream.requests, [])
})
