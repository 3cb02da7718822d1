/**
 * Requests that have another reading for some router, parser or checker (runtime-behaviour.md, "Targets and ids" and "What the runtime does not check"), each with what the
 * gateway makes of it and with what the real runtime makes of the same bytes. What the fuzz finds is added at the end.
 */
import { test } from 'tap'
import type { Reason } from '../../src/core/reasons.ts'
import type { RouteId } from '../../src/core/route/routes.ts'
import { TRANSPORTS } from '../../src/core/route/transport.ts'
import { caseOf, ADAPTERS, type Case } from '../../testing/fuzz/case.ts'
import { examine } from '../../testing/fuzz/differential.ts'
import { hush } from '../../testing/fuzz/hush.ts'

/** What the gateway does; what the runtime would do, where that is something else. */
type Row = readonly [one: Partial<Case> & Pick<Case, 'target'>, gateway: RouteId | Reason, runtime?: RouteId | null]

const BASE = '/api/copilotkit'
const HOST = ['host', 'gateway.example'] as const
const JSON_LINES = [HOST, ['content-type', 'application/json']] as const
const RUN = { method: 'POST', target: `${BASE}/agent/default/run`, headers: JSON_LINES }

/** A run with this text as its body. */
const runOf = (body: string, more: Partial<Case> = {}): Row[0] => ({ ...RUN, body, ...more })

// oxfmt-ignore
const TARGETS: readonly Row[] = [
  [{ target: `${BASE}/threads/t1/messages` }, 'threads/messages', 'threads/messages'],
  [{ target: `${BASE}/threads/t1/messages?x=/threads/t2/state` }, 'threads/messages', 'threads/messages'],
  [{ target: `${BASE}/threads/a:b/messages` }, 'threads/messages', 'threads/messages'],
  [{ target: `${BASE}/threads/a%3Ab/messages` }, 'threads/messages', 'threads/messages'],
  [{ target: `${BASE}/agent/agent/run`, method: 'POST', headers: JSON_LINES, body: '{"threadId":"t1"}' }, 'agent/run', 'agent/run'],

  // Empty segments are dropped, dot segments folded, and only the end of the path counts.
  [{ target: `${BASE}/threads/t1/messages/` }, 'target-empty-segment', 'threads/messages'],
  [{ target: `${BASE}//threads//t1///messages` }, 'target-empty-segment', 'threads/messages'],
  [{ target: `${BASE}/junk/at/all/threads/t1/messages` }, 'route-unknown', 'threads/messages'],
  [{ target: `${BASE}/agent/default/threads/clear`, method: 'POST' }, 'route-unknown', 'threads/clear'],
  [{ target: `${BASE}/foo/agent/default/run`, method: 'POST' }, 'route-unknown', 'agent/run'],
  [{ target: `${BASE}/threads/t1/../victim-1/messages` }, 'target-dot-segment', 'threads/messages'],
  [{ target: `${BASE}/threads/t1/%2e%2e/victim-1/messages` }, 'target-dot-segment', 'threads/messages'],
  [{ target: `${BASE}/threads/t1/.%2E/victim-1/messages` }, 'target-dot-segment', 'threads/messages'],
  [{ target: `${BASE}/threads/t1/messages/../../clear`, method: 'POST' }, 'target-dot-segment', 'threads/clear'],
  [{ target: `${BASE}/threads/t1/messages/../../victim-1`, method: 'DELETE' }, 'target-dot-segment', 'threads/update'],

  // Backslashes are slashes, fragments are cut off.
  [{ target: `${BASE}/threads\\t1\\messages` }, 'target-character', 'threads/messages'],
  [{ target: `${BASE}/threads\\clear`, method: 'POST' }, 'target-character', 'threads/clear'],
  [{ target: `${BASE}/threads/clear#/messages`, method: 'POST' }, 'target-character', 'threads/clear'],
  [{ target: `${BASE}/threads/t1/state#` }, 'target-character', 'threads/state'],
  [{ target: `${BASE}/threads/t1/state\t` }, 'target-character', 'threads/state'],

  // Ids are decoded once, words never.
  [{ target: `${BASE}/threads/%63lear`, method: 'PATCH', headers: JSON_LINES, body: '{}' }, 'target-encoding', 'threads/update'],
  [{ target: `${BASE}/thread%73/t1/messages` }, 'target-encoding', null],
  [{ target: `${BASE}/threads%2Ft1/messages` }, 'target-separator', null],
  [{ target: `${BASE}/threads%5Cclear`, method: 'POST' }, 'target-separator', null],
  [{ target: `${BASE}/threads/%54%31/messages` }, 'target-encoding', 'threads/messages'],
  [{ target: `${BASE}/threads/a%2Fb/messages` }, 'target-separator', 'threads/messages'],
  [{ target: `${BASE}/threads/a%252Fb/messages` }, 'target-separator', 'threads/messages'],
  [{ target: `${BASE}/threads/..%2fvictim-1/messages` }, 'target-separator', 'threads/messages'],
  [{ target: `${BASE}/threads/%00/messages` }, 'target-separator', 'threads/messages'],
  [{ target: `${BASE}/threads/t1%20/messages` }, 'thread-id-invalid', 'threads/messages'],
  [{ target: `${BASE}/threads/t%E2%80%8B1/messages` }, 'thread-id-invalid', 'threads/messages'],
  [{ target: `${BASE}/threads/e%CC%81/messages` }, 'thread-id-invalid', 'threads/messages'],
  [{ target: `${BASE}/threads/%EF%BC%94/messages` }, 'thread-id-invalid', 'threads/messages'],
  [{ target: `${BASE}/threads/%zz/messages` }, 'target-encoding', null],
  [{ target: `${BASE}/threads/%c0%af/messages` }, 'target-encoding', null],
  [{ target: `${BASE}/threads/t1;x=y/messages` }, 'target-character', 'threads/messages'],
  [{ target: `${BASE}/threads/t1|/messages` }, 'target-character', 'threads/messages'],
  [{ target: `${BASE}/threads/t1./messages` }, 'thread-id-invalid', 'threads/messages'],

  // Words for ids, and ids for words.
  [{ target: `${BASE}/Threads/t1/messages` }, 'route-unknown', null],
  [{ target: `${BASE}/threads/CLEAR`, method: 'PATCH', headers: JSON_LINES, body: '{}' }, 'thread-id-invalid', 'threads/update'],
  [{ target: `${BASE}/threads/clear/messages` }, 'thread-id-invalid', 'threads/messages'],
  [{ target: `${BASE}/threads/subscribe/state` }, 'thread-id-invalid', 'threads/state'],
  [{ target: `${BASE}/threads/clear`, method: 'PATCH' }, 'method-not-allowed', null],
  [{ target: `${BASE}/threads/info` }, 'method-not-allowed', 'info'],
  [{ target: `${BASE}/threads/info`, method: 'DELETE' }, 'thread-id-invalid', null],
  [{ target: `${BASE}/threads/t1/info` }, 'route-unknown', 'info'],
  [{ target: `${BASE}/agent/x/stop/info`, method: 'POST' }, 'thread-id-invalid', null],
  [{ target: `${BASE}/threads/t1/cpk-debug-events` }, 'route-unknown', 'cpk-debug-events'],
  [{ target: `${BASE}/threads/transcribe`, method: 'POST' }, 'method-not-allowed', 'transcribe'],
  [{ target: `${BASE}/agent/x/stop/transcribe`, method: 'POST' }, 'thread-id-invalid', 'transcribe'],
  [{ target: `${BASE}/threads/t1/annotate`, method: 'POST' }, 'route-unknown', 'annotate'],
  [{ target: `${BASE}/threads/threads/clear`, method: 'POST' }, 'route-unknown', 'threads/clear'],
  [{ target: `${BASE}/agent/agent/stop/run`, method: 'POST' }, 'thread-id-invalid', 'agent/run'],
  [{ target: `${BASE}/agent/default/stop/run`, method: 'POST' }, 'thread-id-invalid', 'agent/stop'],
  [{ target: `${BASE}/agent/x/run/agent/default/run`, method: 'POST' }, 'route-unknown', 'agent/run'],
  [{ target: `${BASE}/agent/a%2Fb/run`, method: 'POST' }, 'target-separator', 'agent/run'],
  [{ target: `${BASE}/agent/constructor/run`, method: 'POST', headers: JSON_LINES, body: '{"threadId":"t1"}' }, 'agent-id-invalid', 'agent/run'],
  [{ target: `${BASE}/agent//run`, method: 'POST' }, 'target-empty-segment', null],
  [{ target: `${BASE}x/threads` }, 'route-unknown', null],

  // Another host's, or no path at all.
  [{ target: `http://evil.example${BASE}/threads/clear`, method: 'POST' }, 'target-not-origin-form', null],
  [{ target: `//evil.example${BASE}/threads/clear`, method: 'POST' }, 'target-empty-segment', null],
  [{ target: '*', method: 'OPTIONS' }, 'target-not-origin-form', null],
  [{ target: '/../../threads/clear', method: 'POST' }, 'target-dot-segment', null],
  [{ target: '//evil.example/threads/clear', method: 'POST', place: 'no base path' }, 'target-empty-segment', 'threads/clear'],
  [{ target: 'http://evil.example/threads/clear', method: 'POST', place: 'no base path' }, 'target-not-origin-form', 'threads/clear'],
  [{ target: '/../../threads/clear', method: 'POST', place: 'no base path' }, 'target-dot-segment', 'threads/clear'],
  [{ target: '/x/threads/clear', method: 'POST', place: 'no base path' }, 'route-unknown', 'threads/clear'],
  [{ target: '/chatx/threads/t1/messages', place: 'public path before no base path' }, 'route-unknown', 'threads/messages'],
  [{ target: '/chat/threads/t1/messages', place: 'public path before no base path' }, 'threads/messages', 'threads/messages'],

  // Methods.
  [{ target: `${BASE}/threads/t1/messages`, method: 'HEAD' }, 'method-not-allowed', null],
  [{ target: `${BASE}/info`, method: 'get' }, 'method-not-allowed', null],
  [{ target: `${BASE}/threads/t1/messages`, method: 'POST', headers: [HOST, ['x-http-method-override', 'GET']] }, 'method-not-allowed', null],
  [{ target: `${BASE}/threads/t1/messages`, method: 'TRACE' }, 'method-not-allowed', null],

  // Queries.
  [{ target: `${BASE}/threads?agentId=default&agentId=remote` }, 'query-name-repeated', 'threads/list'],
  [{ target: `${BASE}/threads?agentId=default&agent%49d=remote` }, 'query-name-repeated', 'threads/list'],
  [{ target: `${BASE}/threads?agentId=%ff` }, 'query-encoding', 'threads/list'],
]

// oxfmt-ignore
const BODIES: readonly Row[] = [
  [runOf('{"threadId":"t1"}'), 'agent/run', 'agent/run'],
  [runOf('{"\\u0074hreadId":"t1"}'), 'agent/run', 'agent/run'],
  [runOf('{"threadId":"victim-1"}'), 'thread-foreign', 'agent/run'],
  [runOf('{"threadId":"t1","threadId":"victim-1"}'), 'body-key-repeated', 'agent/run'],
  [runOf('{"threadId":"t1","\\u0074hreadId":"victim-1"}'), 'body-key-repeated', 'agent/run'],
  [runOf('{"threadId":"t1","__proto__":{"threadId":"victim-1"}}'), 'body-key-forbidden', 'agent/run'],
  [runOf('{"threadId":""}'), 'thread-id-invalid', 'agent/run'],
  [runOf('{"threadId":"t1\\u0000"}'), 'thread-id-invalid', 'agent/run'],
  [runOf('{"threadId":"clear"}'), 'thread-id-invalid', 'agent/run'],
  [runOf('{"threadId":"t1"} {}'), 'body-not-json', 'agent/run'],
  [runOf('\xef\xbb\xbf{"threadId":"victim-1"}'), 'body-not-json', 'agent/run'],
  [runOf('{"threadId":"t1\xff"}'), 'body-not-utf8', 'agent/run'],
  [runOf('{"threadId":"victim-1"}', { headers: [HOST, ['content-type', 'text/plain']] }), 'media-type-unsupported', 'agent/run'],
  [runOf('{"threadId":"t1","+AHQ-hreadId":"victim-1"}', { headers: [HOST, ['content-type', 'application/json; charset=utf-7']] }), 'media-type-unsupported', 'agent/run'],
  [runOf('{"threadId":"t1"}', { headers: [...JSON_LINES, ['content-encoding', 'gzip']] }), 'content-encoding-unsupported'],
  [runOf('{"threadId":"t1","method":"agent/run","params":{"agentId":"default"},"body":{"threadId":"victim-1"}}'), 'agent/run', 'agent/run'],
  [runOf('{"method":"agent/run","params":{"agentId":"default"},"body":{"threadId":"t1"}}', { target: `${BASE}/agent/default/stop/t1` }), 'agent/stop', 'agent/stop'],
  [{ target: `${BASE}/threads/t1/messages`, headers: JSON_LINES, body: '{"threadId":"victim-1"}' }, 'body-unexpected', 'threads/messages'],

  // What the runtime would put before the target is never the caller's.
  [runOf('{"threadId":"t1"}', { headers: [['host', 'x/api/copilotkit/threads/clear?'], ['content-type', 'application/json']] }), 'agent/run', 'agent/run'],
  [runOf('{"threadId":"t1"}', { headers: [...JSON_LINES, ['host', 'evil.example']] }), 'header-repeated'],
  [runOf('{"threadId":"t1"}', { headers: [...JSON_LINES, ['x-original-url', '/threads/clear']] }), 'agent/run', 'agent/run'],

  // Found by the fuzz. An empty body is none, whatever it is said to be written in.
  [{ target: `${BASE}/threads/t1`, method: 'DELETE', httpVersion: '1.0', headers: [...JSON_LINES, ['content-encoding', 'gzip']], body: '' }, 'threads/update', 'threads/update'],
  // The runtime looks for the type of a recording in lower case; the gateway writes it so.
  [{ target: `${BASE}/transcribe`, method: 'POST', headers: [HOST, ['content-type', 'Multipart/Form-Data; Boundary=b1']], body: '{"audio":"x"}' }, 'transcribe', 'transcribe'],
]

/** An envelope of these members, in their order, as a client sends it. */
const envelopeOf = (method: string, params?: object, body?: unknown, more: Partial<Case> = {}): Row[0] =>
  written(JSON.stringify({ method, params, body }), more)

/** An envelope as text; a case has a character for each of its bytes. */
const written = (text: string, more: Partial<Case> = {}): Row[0] => ({
  ...RUN,
  target: BASE,
  body: Buffer.from(text).toString('latin1'),
  ...more,
})

const tunnel = (path: string, httpMethod = 'GET', body?: unknown): Row[0] =>
  envelopeOf('resource/request', { path, httpMethod }, body)

const DEFAULT = { agentId: 'default' }
const MINE = { threadId: 't1' }

// oxfmt-ignore
const ENVELOPES: readonly Row[] = [
  [envelopeOf('info'), 'info', 'info'],
  [envelopeOf('agent/run', DEFAULT, MINE), 'agent/run', 'agent/run'],
  [envelopeOf('agent/connect', DEFAULT, MINE), 'agent/connect', 'agent/connect'],
  [envelopeOf('agent/suggest', DEFAULT, MINE), 'agent/suggest', 'agent/suggest'],
  [envelopeOf('agent/stop', { ...DEFAULT, ...MINE }), 'agent/stop', 'agent/stop'],
  [envelopeOf('agent/stop', { ...DEFAULT, ...MINE }, { runId: 'r1' }), 'agent/stop', 'agent/stop'],
  [envelopeOf('transcribe', undefined, { audio: 'GkU=', mimeType: 'audio/webm' }), 'transcribe', 'transcribe'],
  [envelopeOf('inspector/metadata'), 'inspector/metadata', 'inspector/metadata'],
  [envelopeOf('inspector/learning', { ...DEFAULT, skillsPage: 2, insightsPage: '3' }), 'inspector/learning', 'inspector/learning'],
  [tunnel('/threads?agentId=default'), 'threads/list', 'threads/list'],
  [tunnel('/threads/t1/messages'), 'threads/messages', 'threads/messages'],
  [tunnel('/threads/t1', 'PATCH', { agentId: 'default', name: 'x' }), 'threads/update', 'threads/update'],
  [tunnel('/threads/t1', 'DELETE', { agentId: 'default' }), 'threads/update', 'threads/update'],
  [tunnel('/threads/clear', 'POST', {}), 'threads/clear', 'threads/clear'],
  [tunnel('/memories/m1', 'DELETE'), 'memories/mutate', 'memories/mutate'],
  [tunnel('/annotate', 'POST', { ...MINE, type: 'x' }), 'annotate', 'annotate'],

  // Whose it is stands in the body, or in the params, as ever.
  [envelopeOf('agent/run', DEFAULT, { threadId: 'victim-1' }), 'thread-foreign', 'agent/run'],
  [envelopeOf('agent/run', { ...DEFAULT, threadId: 't1' }, { threadId: 'victim-1' }), 'thread-foreign', 'agent/run'],
  [envelopeOf('agent/stop', { ...DEFAULT, threadId: 'victim-1' }, MINE), 'thread-foreign', 'agent/stop'],
  [tunnel('/threads/victim-1/messages'), 'thread-foreign', 'threads/messages'],
  [tunnel('/annotate', 'POST', { threadId: 'victim-1' }), 'thread-foreign', 'annotate'],

  // A string is opened once more by the runtime, by whatever way it came.
  [envelopeOf('agent/run', DEFAULT, JSON.stringify(MINE)), 'body-not-object', 'agent/run'],
  [envelopeOf('agent/run', DEFAULT, '{"threadId":"victim-1"}'), 'body-not-object', 'agent/run'],
  [envelopeOf('transcribe', undefined, '{"audio":"x"}'), 'body-not-object', 'transcribe'],
  [tunnel('/annotate', 'POST', '{"threadId":"victim-1"}'), 'body-not-object', 'annotate'],
  [envelopeOf('agent/run', DEFAULT, [MINE]), 'body-not-object', 'agent/run'],

  // The path in the tunnel is read as the runtime reads one: as a URL, by its end.
  [tunnel('/threads/t1/../victim-1/messages'), 'target-dot-segment', 'threads/messages'],
  [tunnel('/threads/t1/%2e%2e/victim-1/messages'), 'target-dot-segment', 'threads/messages'],
  [tunnel('/threads\\clear', 'POST'), 'target-character', 'threads/clear'],
  [tunnel('/threads/clear#/messages', 'POST'), 'target-character', 'threads/clear'],
  [tunnel('/junk/threads/victim-1/state'), 'route-unknown', 'threads/state'],
  [tunnel(`${BASE}/threads/t1/state`), 'route-unknown', 'threads/state'],
  [tunnel('/agent/default/threads/clear', 'POST'), 'route-unknown', 'threads/clear'],
  [tunnel('//evil.example/threads/t1/state'), 'target-empty-segment', null],
  [tunnel('/\\evil.example/threads/t1/state'), 'target-character', null],
  [tunnel('/\t/copilotkit.resource/threads/victim-1/state'), 'target-character', 'threads/state'],
  [tunnel('http://copilotkit.resource/threads/t1/state'), 'target-not-origin-form', null],
  [tunnel('threads/t1/state'), 'target-not-origin-form', null],
  [tunnel('/threads/a%2Fb/messages'), 'target-separator', 'threads/messages'],
  [tunnel('/threads?agentId=default&agent%49d=remote'), 'query-name-repeated', 'threads/list'],
  [tunnel('/threads/t1/messages', 'get'), 'method-not-allowed', 'threads/messages'],
  [tunnel('/threads/clear', 'PO\u017fT'), 'method-not-allowed', 'threads/clear'],
  [tunnel('/threads/clear'), 'method-not-allowed', null],

  // What has a method of its own is not in the tunnel, and the other way round.
  [tunnel('/agent/default/run', 'POST', MINE), 'route-unknown', null],
  [tunnel('/info'), 'route-unknown', null],
  [tunnel('/cpk-debug-events'), 'route-unknown', null],
  [tunnel('/'), 'route-unknown', null],
  [envelopeOf('threads/clear'), 'route-unknown', null],
  [envelopeOf('cpk-debug-events'), 'route-unknown', null],

  // Two of the same, or another spelling of one.
  [written('{"method":"info","method":"resource/request","params":{"path":"/threads/clear","httpMethod":"POST"}}'), 'body-key-repeated', 'threads/clear'],
  [written('{"method":"info","\\u006dethod":"inspector/metadata"}'), 'body-key-repeated', 'inspector/metadata'],
  [written('{"method":"agent/run","params":{"agentId":"default"},"body":{"threadId":"t1"},"body":{"threadId":"victim-1"}}'), 'body-key-repeated', 'agent/run'],
  [written('{"method":"agent/stop","params":{"agentId":"default","threadId":"t1","threadId":"victim-1"}}'), 'body-key-repeated', 'agent/stop'],
  [written('{"method":"agent/run","params":{"__proto__":{"agentId":"default"}},"body":{"threadId":"t1"}}'), 'body-key-forbidden', null],
  [written('{"method":["info"]}'), 'route-unknown', null],
  [written('[{"method":"info"}]'), 'body-not-object', null],
  [envelopeOf('INFO'), 'route-unknown', null],
  [envelopeOf('info '), 'route-unknown', null],

  // Ids have the same grammars, and params one form.
  [envelopeOf('agent/run', { agentId: '__proto__' }, MINE), 'agent-id-invalid', 'agent/run'],
  [envelopeOf('agent/run', { agentId: 'a/../b' }, MINE), 'agent-id-invalid', 'agent/run'],
  [envelopeOf('agent/run', [DEFAULT], MINE), 'agent-id-invalid', null],
  [envelopeOf('agent/run', undefined, MINE), 'agent-id-invalid', null],
  [envelopeOf('agent/stop', { ...DEFAULT, threadId: ' t1' }), 'thread-id-invalid', 'agent/stop'],
  [envelopeOf('agent/stop', { ...DEFAULT, threadId: ['t1'] }), 'thread-id-invalid', null],

  // Nothing but a POST of JSON to the public path is an envelope.
  [envelopeOf('info', undefined, undefined, { method: 'PATCH' }), 'route-unknown', null],
  [envelopeOf('info', undefined, undefined, { target: `${BASE}/` }), 'target-empty-segment', 'info'],
  [envelopeOf('info', undefined, undefined, { target: `${BASE}/x`, upstream: 'single-route' }), 'route-unknown', 'info'],
  [envelopeOf('agent/run', DEFAULT, { threadId: 'victim-1' }, { target: `${BASE}/agent/default/run`, upstream: 'single-route' }), 'thread-id-invalid', 'agent/run'],
  [envelopeOf('info', undefined, undefined, { headers: [HOST, ['content-type', 'text/plain; application/json']] }), 'route-unknown', 'info'],

  // To an upstream of one route, or of many.
  [{ target: `${BASE}/threads/t1/messages`, upstream: 'single-route' }, 'threads/messages', 'threads/messages'],
  [{ target: `${BASE}/cpk-debug-events`, upstream: 'single-route' }, 'upstream-lacks-route', 'cpk-debug-events'],
  [runOf('{"threadId":"t1","method":"info","params":{}}', { upstream: 'single-route' }), 'agent/run', 'agent/run'],
  [{ ...envelopeOf('agent/run', DEFAULT, MINE), upstream: 'single-route' }, 'agent/run', 'agent/run'],
  [{ ...tunnel('/threads/t1/messages'), upstream: 'single-route' }, 'threads/messages', 'threads/messages'],
  [{ ...envelopeOf('info', undefined, undefined, { place: 'no base path', target: '/' }), upstream: 'single-route' }, 'info', 'info'],
  [{ ...envelopeOf('info', undefined, undefined, { place: 'public path before no base path', target: '/chat' }), upstream: 'single-route' }, 'info', 'info'],
]

for (const [what, rows] of Object.entries({ targets: TARGETS, bodies: BODIES, envelopes: ENVELOPES })) {
  void test(`${what} with two readings`, async (t) => {
    t.teardown(hush())
    for (const adapter of ADAPTERS) {
      for (const [one, gateway, runtime] of rows) {
        const finding = await examine(caseOf({ ...one, adapter }))
        const name = `${adapter}: ${one.method ?? 'GET'} ${one.target} ${one.body ?? ''}`
        t.same(finding.faults, [], name)
        t.equal(finding.outcome, gateway, name)
        // Express's own parser and router have readings of their own; node's adapter is what the contract tells of.
        if (runtime !== undefined && adapter === 'node') t.equal(finding.asWritten ?? null, runtime, `${name}: the runtime`)
      }
    }
  })
}

const form = (lines: string, content = 'x'): Partial<Case> & Pick<Case, 'target'> => ({
  target: `${BASE}/transcribe`,
  method: 'POST',
  headers: [HOST, ['content-type', 'multipart/form-data; boundary=b1']],
  body: `--b1\r\nContent-Disposition: form-data; ${lines}\r\n\r\n${content}\r\n--b1--\r\n`,
})
const WEBM = 'Content-Type: audio/webm'

/** Whether the gateway refuses them or means the same by them is not said here. */
// oxfmt-ignore
const FOUND: readonly Row[0][] = [
  // The runtime takes what the params of this one don't name from the query of the outer target.
  envelopeOf('inspector/learning', undefined, undefined, { target: `${BASE}?agentId=default` }),
  envelopeOf('inspector/learning', { skillsPage: '\ud800' }),
  // Without a body it stops, with null for one it does not.
  envelopeOf('agent/stop', { ...DEFAULT, ...MINE }, null),
  // Forms that the runtime reads as another file, or as none.
  form(`name="audio"; filename="a.webm"; filename*=utf-8''b.webm\r\n${WEBM}`),
  form(`name="audio"; filename="a%22b.webm"\r\n${WEBM}`),
  form(`name="audio"; filename="a\\"b.webm"\r\n${WEBM}`),
  form('name="audio"; filename="a.webm"\r\nContent-Type: '),
  form(`name="audio"; filename="a.webm"\r\n${WEBM}\r\nContent-Type: audio/mp3`),
  form(`name="audio"; filename="a.webm"\r\nContent-Transfer-Encoding: base64\r\n${WEBM}`, 'GkU='),
  form('name="audio"\r\nContent-Type: application/octet-stream'),
  form(`name="audio"; filename="a.webm"\r\n${WEBM}`, '\n--b1\n'),
]

void test('what the fuzz found', async (t) => {
  t.teardown(hush())
  for (const adapter of ADAPTERS) {
    for (const upstream of TRANSPORTS) {
      for (const one of FOUND) {
        const faults = await examine(caseOf({ ...one, adapter, upstream })).then(
          (finding) => finding.faults,
          (error: unknown) => [String(error)],
        )
        t.same(faults, [], `${adapter}, ${upstream}: ${one.target} ${one.body}`)
      }
    }
  }
})
