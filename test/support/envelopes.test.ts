/** The two readers and writers of envelopes that tests lean on: what they let pass unnoticed, no other test would notice. */
import { test } from 'tap'
import { enveloped } from '../../testing/support/enveloped.ts'
import { unwrapped } from '../../testing/support/unwrapped.ts'

const BASE = '/api/copilotkit'

/** An envelope as it comes to an upstream. */
function wire(text: string, more: { method?: string; target?: string; headers?: Record<string, string> } = {}) {
  const body = Buffer.from(text)
  const headers = { Host: 'a', 'Content-Type': 'application/json', 'Content-Length': String(body.length), ...more.headers }
  return { method: more.method ?? 'POST', target: more.target ?? BASE, rawHeaders: Object.entries(headers).flat(), body }
}

/** What `unwrapped` makes of it. */
const read = (...given: Parameters<typeof wire>): string => {
  const { method, target, body } = unwrapped(wire(...given))
  return `${method} ${target} ${body.toString()}`.trim()
}

const RUN = '{"method":"agent/run","params":{"agentId":"a:b"},"body":{"threadId":"t"}}'

void test('an envelope of the gateway’s is read as the request that it stands for', (t) => {
  for (const [text, request] of [
    [RUN, `POST ${BASE}/agent/a%3Ab/run {"threadId":"t"}`],
    ['{"method":"agent/stop","params":{"agentId":"a","threadId":"t"}}', `POST ${BASE}/agent/a/stop/t`],
    ['{"method":"info","params":{}}', `GET ${BASE}/info`],
    ['{"method":"inspector/learning","params":{"agentId":"a"}}', `GET ${BASE}/inspector-learning?agentId=a`],
    ['{"method":"resource/request","params":{"path":"/threads?limit=1","httpMethod":"GET"}}', `GET ${BASE}/threads?limit=1`],
  ] as const) {
    t.equal(read(text), request)
  }
  const { rawHeaders } = unwrapped(wire('{"method":"info","params":{}}'))
  t.same(rawHeaders, ['Host', 'a'], 'what is inside has no body, and so no type and no length')
  t.end()
})

void test('anything else is none', (t) => {
  for (const text of [
    'x',
    `${RUN} `,
    `${RUN}${RUN}`,
    '{"method":"agent/run","params":{"agentId":"a"},"body":"{}"}',
    '{"method":"agent/run","params":{"agentId":"a"},"body":[]}',
    '{"method":"agent/run","params":{"agentId":"a","threadId":"t"},"body":{}}',
    '{"method":"agent/run","params":{"agentId":1},"body":{}}',
    '{"method":"agent/run","params":{"agentId":"a"},"more":1,"body":{}}',
    '{"method":"agent/run","params":{"agentId":"a"},"body":{},"more":1}',
    '{"params":{"agentId":"a"},"method":"agent/run","body":{}}',
    '{"method":"agent/walk","params":{}}',
    '{"method":"info","params":{},"body":{}}',
    '{"method":"info"}x',
    '{"method":"resource/request","params":{"path":"/agent/a/run","httpMethod":"POST"}}',
    '{"method":"resource/request","params":{"path":"/threads","httpMethod":"PUT"}}',
    '{"method":"resource/request","params":{"path":"/threads","httpMethod":"GET"},"body":{}}',
  ]) {
    t.throws(() => read(text), text)
  }
  t.throws(() => read(RUN, { method: 'PUT' }))
  t.throws(() => read(RUN, { target: `${BASE}/` }))
  t.throws(() => read(RUN, { target: `${BASE}/agent/a/run` }))
  t.throws(() => read(RUN, { headers: { 'Content-Type': 'text/plain' } }))
  t.throws(() => read(RUN, { headers: { 'Content-Length': '1' } }))
  t.throws(() => read(RUN, { headers: { 'Transfer-Encoding': 'chunked' } }))
  t.end()
})

void test('a request is written as an envelope with its own text', (t) => {
  const written = (method: string, below: string, body?: string): string | undefined =>
    enveloped({ method, target: `${BASE}${below}`, body })?.body.toString()
  const tunnel = (path: string, httpMethod: string) => ({ method: 'resource/request', params: { path, httpMethod } })
  t.equal(written('POST', '/agent/a%3Ab/run', '{"threadId":"t","threadId":"u"'), '{"method":"agent/run","params":{"agentId":"a:b"},"body":{"threadId":"t","threadId":"u"}') // oxfmt-ignore
  t.equal(written('POST', '/agent/%61/stop/%74'), '{"method":"agent/stop","params":{"agentId":"%61","threadId":"%74"}}')
  for (const path of ['/threads/a/../b/messages?x=1#y', '\\threads\\clear', '/agent/a//run', '/nowhere']) {
    t.equal(written('PATCH', path), JSON.stringify(tunnel(path, 'PATCH')))
  }
  t.equal(written('GET', ''), undefined)
  t.equal(written('GET', 'x/threads'), undefined)
  t.equal(written('GET', '/cpk-debug-events'), undefined)
  t.end()
})
