/**
 * An answer to one user that a shared cache keeps and gives to another: Hono's cache took `Vary: Authorization` for no reason not
 * to store (GHSA-p77w-8qqv-26rm), and RFC 9111 §3.5 lets any shared cache store an answer to an authenticated request as soon
 * as it says `public`, `s-maxage` or `must-revalidate`. Whatever the upstream says of caching, what leaves here is private and not
 * stored; a stream is never reused without asking; nothing is left that a cache could ask with, and no caller's condition arrives.
 */
import { gated } from '../../testing/support/gated.ts'
import { testFirstPair, testUnbridged } from '../../testing/support/pairs.ts'
import { firstAnswer, sendRaw, type RawRequest } from '../../testing/support/raw.ts'
import { json, type Answering } from '../../testing/support/upstream.ts'
import { edited } from '../../testing/support/policies.ts'
import { BASE, BODY_ROUTES, PATH_ROUTES, run } from './thread-routes.ts'

const VALIDATORS = [
  'cdn-cache-control',
  'cloudflare-cdn-cache-control',
  'x-cdn-cache-control',
  'surrogate-control',
  'surrogate-key',
  'edge-control',
  'pragma',
  'warning',
  'x-accel-expires',
  'x-accel-redirect',
  'x-sendfile',
  'x-lighttpd-send-file',
  'etag',
  'last-modified',
  'age',
  'expires',
]

/** What upstreams say to have an answer kept. */
const CACHEABLE: readonly Record<string, string | string[]>[] = [
  { 'cache-control': 'public, max-age=3600' },
  { 'cache-control': 's-maxage=3600, must-revalidate' },
  { 'Cache-Control': 'max-age=3600, stale-while-revalidate=86400' },
  { 'cache-control': ['private', 'public, s-maxage=10'] },
  { 'cache-control': 'immutable', expires: 'Thu, 01 Jan 2099 00:00:00 GMT', age: '1' },
  { etag: '"a"', 'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT' },
  { vary: 'Accept', ETag: 'W/"b"' },
  // What some caches and proxies obey in place of Cache-Control, or as an order to send a file (RFC 9213; nginx, Akamai).
  {
    'CDN-Cache-Control': 'public, max-age=3600',
    'cloudflare-cdn-cache-control': 'max-age=60',
    'x-cdn-cache-control': 'public',
    'surrogate-control': 'max-age=3600',
    'surrogate-key': 'a',
    'edge-control': 'cache-maxage=1h',
    pragma: 'public',
    warning: '1',
    'x-accel-expires': '3600',
    'x-accel-redirect': '/internal',
    'x-sendfile': '/etc/passwd',
    'x-lighttpd-send-file': '/etc/passwd',
  },
  {},
]

/** Every route that a signed-in user may have answered by the upstream. */
const ROUTES: readonly { readonly name: string; readonly request: RawRequest }[] = [
  { name: 'info', request: { target: `${BASE}/info` } },
  { name: 'the handshake', request: { target: BASE, body: '{"method":"info"}' } },
  { name: 'transcribe', request: { target: `${BASE}/transcribe`, body: '{"audio":"AAAA"}' } },
  ...[...PATH_ROUTES, ...BODY_ROUTES]
    .filter(({ name }) => name !== 'delete')
    .map(({ name, to }) => ({ name, request: to('mine') })),
]

/** The values of a header, a line each. */
function linesOf(text: string, name: string): string[] {
  const top = text.slice(0, text.indexOf('\r\n\r\n')).split('\r\n')
  return top.filter((line) => line.toLowerCase().startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim())
}

void testUnbridged(
  'what the upstream answers is private and not stored, whatever it says, on every route and with every status',
  async (t, pair) => {
    const { gateway, alice, upstream } = await gated(t, undefined, { pair })
    t.equal(await run(gateway, alice, 'mine'), 200)
    for (const { name, request } of ROUTES) {
      for (const status of [200, 201, 203, 404, 410, 422, 500]) {
        for (const headers of CACHEABLE) {
          upstream.answer(json({ mine: 1 }, status, headers))
          const text = await sendRaw(gateway.url, gateway.bytes({ ...request, token: alice }))
          t.equal(firstAnswer(text).status, status, name)
          t.same(linesOf(text, 'cache-control'), ['private, no-store'], `${name} ${status} ${JSON.stringify(headers)}`)
          for (const validator of VALIDATORS) t.same(linesOf(text, validator), [], `${name}: ${validator}`)
        }
      }
    }
  },
)

void testFirstPair('so is what has no body, another type or another method’s answer', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  t.equal(await run(gateway, alice, 'mine'), 200)
  const headers = { 'cache-control': 'public, max-age=3600', etag: '"a"', expires: 'Thu, 01 Jan 2099 00:00:00 GMT' }
  const plain =
    (status: number, type: string | null): Answering =>
    (_request, response) =>
      void response
        .writeHead(status, { ...headers, ...(type === null ? {} : { 'content-type': type }) })
        .end(status === 204 ? '' : 'x')
  for (const answering of [
    plain(204, null),
    plain(200, 'text/plain'),
    plain(200, 'image/png'),
    plain(200, null),
    plain(200, 'text/css'),
  ]) {
    upstream.answer(answering)
    // For a client of the other transport /info is written anew, and has to be JSON.
    const info = pair.client === pair.upstream ? [`${BASE}/info`] : []
    for (const target of [`${BASE}/threads/mine/messages`, ...info]) {
      const text = await sendRaw(gateway.url, gateway.bytes({ target, token: alice }))
      t.same(linesOf(text, 'cache-control'), ['private, no-store'])
      for (const validator of VALIDATORS) t.same(linesOf(text, validator), [])
    }
  }
  upstream.answer(json({}, 200, headers))
  const gone = await sendRaw(gateway.url, gateway.bytes({ method: 'DELETE', target: `${BASE}/threads/mine`, token: alice }))
  t.same(linesOf(gone, 'cache-control'), ['private, no-store'])
})

void testFirstPair('a stream is not reused without asking, on routes that cache too', async (t, pair) => {
  const policy = edited('[cpk-debug-events]\n    allow: []', '[cpk-debug-events]\n    allow: [operator]')
  const { gateway, alice, olga, upstream } = await gated(t, json({}), { pair, policy })
  t.equal(await run(gateway, alice, 'mine'), 200)
  for (const headers of CACHEABLE) {
    for (const type of ['text/event-stream', 'Text/Event-Stream; charset=utf-8', 'application/vnd.ag-ui.event+proto']) {
      upstream.answer(
        (_request, response) => void response.writeHead(200, { ...headers, 'content-type': type }).end('data: {}\n\n'),
      )
      for (const request of [
        ...(pair.upstream === 'multi-route' ? [{ target: `${BASE}/cpk-debug-events`, token: olga }] : []),
        { target: `${BASE}/threads/mine/messages`, token: alice },
        { ...BODY_ROUTES[0]!.to('mine'), token: alice },
      ]) {
        const text = await sendRaw(gateway.url, gateway.bytes(request))
        t.same(linesOf(text, 'cache-control'), ['no-cache, no-transform'], type)
        for (const validator of VALIDATORS) t.same(linesOf(text, validator), [], validator)
      }
    }
  }
})

void testFirstPair('a list, an empty connect and every refusal are not stored', async (t, pair) => {
  const { gateway, alice, bob, upstream } = await gated(t, json({}), {
    pair,
    config: { limits: { body: '1KiB', runBody: '1KiB' } },
  })
  t.equal(await run(gateway, alice, 'mine'), 200)
  upstream.answer(json({ threads: [{ id: 'mine' }] }, 200, { 'cache-control': 'public', etag: '"1"' }))
  const bodyOf = (body: string, type = 'application/json') => ({
    body,
    framing: [`Content-Type: ${type}`, `Content-Length: ${body.length}`],
  })
  const target = `${BASE}/agent/default/run`
  const asked: readonly (readonly [number, RawRequest])[] = [
    [200, { target: `${BASE}/threads`, token: alice }],
    [200, { ...BODY_ROUTES.find(({ name }) => name === 'agent/connect')!.to('unknown'), token: alice }],
    [400, { target: `${BASE}//x`, token: alice }],
    [400, { target: `${BASE}/info`, token: alice, lines: ['Authorization: Bearer x'] }],
    [400, { target, token: alice, ...bodyOf('{') }],
    [400, { target, token: alice, ...bodyOf('{"threadId":"clear"}') }],
    [401, { target: `${BASE}/info` }],
    [401, { target: `${BASE}/info`, token: `${alice}x` }],
    [403, { target: `${BASE}/threads/mine/messages`, token: bob }],
    [404, { target: `${BASE}/threads/mine/state`, token: bob }],
    [404, { target: `${BASE}/style.css`, token: alice }],
    [404, { target: `${BASE}/threads/mine/messages/style.css`, token: alice }],
    [405, { method: 'PUT', target: `${BASE}/info`, token: alice }],
    [405, { method: 'HEAD', target: `${BASE}/threads/mine/messages`, token: alice }],
    [413, { target, token: alice, ...bodyOf(' '.repeat(2000)) }],
    [415, { target, token: alice, ...bodyOf('{}', 'text/plain') }],
    [431, { target: `${BASE}/info`, token: alice, lines: [`x: ${'y'.repeat(20_000)}`] }],
  ]
  for (const [status, request] of asked) {
    const text = await sendRaw(gateway.url, gateway.bytes(request))
    t.equal(firstAnswer(text).status, status, `${status} ${request.target}`)
    const said = linesOf(text, 'cache-control')
    t.equal(said.length, 1)
    t.match(said[0], /^(?:(?:private, )?no-store|no-cache, no-transform)$/, `${status} ${request.target}`)
    for (const validator of VALIDATORS) t.same(linesOf(text, validator), [], validator)
  }
  for (const [status, answering] of [
    [502, json({}, 302, { location: '/x', 'cache-control': 'public' })],
    [502, (_request, response) => void response.destroy()],
    [
      404,
      (_request, response) => void response.writeHead(404, { 'content-type': 'text/html', 'cache-control': 'public' }).end('x'),
    ],
  ] as readonly (readonly [number, Answering])[]) {
    upstream.answer(answering)
    const text = await sendRaw(gateway.url, gateway.bytes({ target: `${BASE}/threads/mine/messages`, token: alice }))
    t.equal(firstAnswer(text).status, status)
    t.same(linesOf(text, 'cache-control'), ['no-store'])
  }
})

void testFirstPair('the name of a page that caches keep is no way to an answer', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  t.equal(await run(gateway, alice, 'mine'), 200)
  const before = upstream.beginnings()
  for (const path of [
    'messages.css',
    'messages/x.js',
    'messages;x.css',
    'messages%2Ex.css',
    'messages%3Fx.css',
    'messages/',
    'messages%00.css',
  ]) {
    const answer = await gateway.ask({ target: `${BASE}/threads/mine/${path}`, token: alice })
    t.ok([400, 404].includes(answer.status), path)
  }
  t.equal(upstream.beginnings(), before)
  const lines = [
    'If-None-Match: "a"',
    'If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT',
    'Cache-Control: only-if-cached',
    'Pragma: x',
    'Range: bytes=0-1',
  ]
  t.equal((await gateway.ask({ target: `${BASE}/threads/mine/messages`, token: alice, lines })).status, 200)
  const { headers } = upstream.requests.at(-1)!
  for (const name of ['if-none-match', 'if-modified-since', 'cache-control', 'pragma', 'range']) t.notOk(headers.has(name), name)
})
