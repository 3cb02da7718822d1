/**
 * JSON that costs its reader far more than its sender: nesting that overflows a stack (CVE-2020-36518 in jackson-databind, CWE-674),
 * millions of tiny values, texts that are none. The gateway looks at a body as it comes and refuses it at the first byte
 * that can't be part of an acceptable one: nothing of the rest is waited for, held or parsed.
 */
import { MAX_DEPTH, MAX_VALUES } from '../../src/core/json/read.ts'
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testEachPair, testUnbridged } from '../../testing/support/pairs.ts'
import { firstAnswer, openRaw } from '../../testing/support/raw.ts'

const RUN = '/api/copilotkit/agent/default/run'
const LENGTH = 27 * 1024 * 1024
const FRAMING = ['Content-Type: application/json', `Content-Length: ${LENGTH}`]

const hostile: readonly (readonly [string, string | Uint8Array, number, string])[] = [
  ['arrays in arrays', `{"threadId":"t1","state":${'['.repeat(MAX_DEPTH)}`, 400, 'body-malformed'],
  ['objects in objects', '{"a":'.repeat(MAX_DEPTH + 1), 400, 'body-malformed'],
  ['both', '[{"a":'.repeat(MAX_DEPTH), 400, 'body-malformed'],
  ['after a closed string with a bracket', `{"a":"]}\\"]","b":${'['.repeat(MAX_DEPTH)}`, 400, 'body-malformed'],
  ['empty objects', `{"threadId":"t1","state":[${'{},'.repeat(MAX_VALUES)}`, 413, 'body-too-large'],
  ['numbers', `{"threadId":"t1","state":[${'1,'.repeat(MAX_VALUES + 1)}`, 413, 'body-too-large'],
  ['empty arrays, commas alone', `{"a":[${','.repeat(MAX_VALUES + 1)}`, 413, 'body-too-large'],
  ['no UTF-8', Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22]), 400, 'body-malformed'],
  ['UTF-16', Buffer.from('\ufeff{"threadId":"t1"}', 'utf16le'), 400, 'body-malformed'],
]

for (const [name, start, status, code] of hostile) {
  void testEachPair(`${name}: refused before the rest has come`, async (t, pair) => {
    const { gateway, upstream, alice } = await gated(t, undefined, { pair })
    for (const framing of [FRAMING, ['Content-Type: application/json', 'Transfer-Encoding: chunked']]) {
      const caller = await openRaw(gateway.url)
      const chunked = framing !== FRAMING
      const bytes = Buffer.from(start as string)
      caller.write(gateway.bytes({ method: 'POST', target: RUN, token: alice, framing }))
      // The end of this body never comes.
      caller.write(chunked ? Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes]) : bytes)
      const answer = firstAnswer(await caller.until(`"code":"${code}"`))
      t.equal(answer.status, status)
      caller.destroy()
    }
    t.equal(upstream.beginnings(), 0)
  })
}

void testUnbridged('27 MB with an attachment pass, and arrive as they were meant', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, undefined, { pair })
  const data = 'QUJD'.repeat((27 * 1024 * 1024) / 4)
  const content = [
    { type: 'text', text: 'what is this? 漢' },
    { type: 'binary', mimeType: 'image/png', data },
  ]
  const input = { ...runInput('t1'), messages: [{ id: 'm1', role: 'user', content }] }
  t.equal((await gateway.ask({ target: RUN, token: alice, body: JSON.stringify(input) })).status, 200)
  t.same(upstream.requests[0]?.json, input)
})
