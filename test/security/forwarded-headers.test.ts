/**
 * Where a request came from, for which host and for which path, told by headers that anybody can write: Fastify read
 * X-Forwarded-Host and -Proto from peers that were no proxy (CVE-2026-3635, CVE-2026-16732), oauth2-proxy matched its open routes
 * against X-Forwarded-Uri (GHSA-7x63-xv5r-3p2x), frameworks take the path from X-Original-URL and X-Rewrite-URL (CVE-2018-14773).
 * Here they decide nothing and go nowhere; X-Forwarded-For of a proxy in `trustedProxies` names the caller in the log, and no more.
 */
import { gated } from '../../testing/support/gated.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { until } from '../../testing/support/until.ts'

const BASE = '/api/copilotkit'
const CLEAR = `${BASE}/threads/clear`

/** Headers that some server takes for the request's origin, host or path. */
const HEADERS: readonly string[] = [
  'X-Forwarded-For: 127.0.0.1',
  'X-Forwarded-For: 127.0.0.1, 10.0.0.1, ::1',
  'X-Forwarded-For: unknown',
  "X-Forwarded-For: '; DROP TABLE threads --",
  'X-Forwarded-Host: internal.example',
  'X-Forwarded-Server: internal.example',
  'X-Forwarded-Port: 8081',
  'X-Forwarded-Proto: https',
  'X-Forwarded-Scheme: https',
  'X-Forwarded-Ssl: on',
  `X-Forwarded-Uri: ${CLEAR}`,
  `X-Forwarded-Path: ${CLEAR}`,
  `X-Forwarded-Prefix: ${BASE}/threads`,
  'X-Forwarded-Method: POST',
  'X-Forwarded-User: olga',
  'X-Forwarded: for=127.0.0.1',
  'Forwarded: for=127.0.0.1;host=internal.example;proto=https;by=127.0.0.1',
  'Forwarded-For: 127.0.0.1',
  'X-Real-IP: 127.0.0.1',
  'X-Client-IP: 127.0.0.1',
  'X-Cluster-Client-IP: 127.0.0.1',
  'X-Originating-IP: 127.0.0.1',
  'X-Remote-IP: 127.0.0.1',
  'X-Remote-Addr: 127.0.0.1',
  'X-ProxyUser-Ip: 127.0.0.1',
  'Client-IP: 127.0.0.1',
  'True-Client-IP: 127.0.0.1',
  'CF-Connecting-IP: 127.0.0.1',
  'Fastly-Client-IP: 127.0.0.1',
  'X-Azure-ClientIP: 127.0.0.1',
  'X-Envoy-External-Address: 127.0.0.1',
  'X-Envoy-Internal: true',
  `X-Envoy-Original-Path: ${CLEAR}`,
  `X-Original-URL: ${CLEAR}`,
  `X-Original-URI: ${CLEAR}`,
  'X-Original-Host: internal.example',
  'X-Original-Method: POST',
  `X-Rewrite-URL: ${CLEAR}`,
  `X-Override-URL: ${CLEAR}`,
  `X-Request-URI: ${CLEAR}`,
  `X-Auth-Request-Redirect: ${CLEAR}`,
  `Destination: ${CLEAR}`,
  'X-Host: internal.example',
  'X-HTTP-Host-Override: internal.example',
  'X-Backend-Host: internal.example',
  'X_Forwarded_For: 127.0.0.1',
  `X_ORIGINAL_URL: ${CLEAR}`,
]

for (const trustedProxies of [[], ['127.0.0.0/8', '::1/128']]) {
  void testFirstPair(
    `they decide nothing and go nowhere; trusted proxies: ${trustedProxies.join(', ') || 'none'}`,
    async (t, pair) => {
      const { gateway, upstream, alice, olga } = await gated(t, undefined, {
        pair,
        config: { listen: { host: '127.0.0.1', port: 0, trustedProxies } },
      })
      for (const line of HEADERS) {
        const lines = [line]
        t.equal((await gateway.ask({ target: `${BASE}/info`, lines })).status, 401, `${line}: no credential`)
        t.equal((await gateway.ask({ target: `${BASE}/nowhere`, token: olga, lines })).status, 404, `${line}: no route`)
        t.equal((await gateway.ask({ target: CLEAR, method: 'POST', token: alice, lines })).status, 403, `${line}: no operator`)
        t.equal((await gateway.ask({ target: CLEAR, token: olga, lines })).status, 405, `${line}: no such method`)
        t.equal((await gateway.ask({ target: `${BASE}/info`, token: olga, lines })).status, 200, line)
        const request = upstream.requests.at(-1)
        t.equal(`${request?.method} ${request?.target}`, `GET ${BASE}/info`)
        t.same(request?.headers.get('host'), [new URL(upstream.url).host])
        t.same([...(request?.headers.keys() ?? [])].sort(), ['accept-encoding', 'authorization', 'connection', 'host', 'x-request-id']) // oxfmt-ignore
      }
      t.equal(upstream.beginnings(), HEADERS.length)
    },
  )
}

/** The line behind so many proxies, of which the connection itself comes from one more. */
const behind = (proxies: number): string =>
  `X-Forwarded-For: ${['203.0.113.7', ...Array.from({ length: proxies }, (_, at) => `10.0.0.${proxies - at}`)].join()}`

void testFirstPair('X-Forwarded-For names the caller in the log only where a trusted proxy sent it', async (t, pair) => {
  const sent = 'X-Forwarded-For: 198.51.100.1, 203.0.113.7'
  for (const [trustedProxies, lines, client] of [
    [[], [sent], '127.0.0.1'],
    [['10.0.0.0/8'], [sent], '127.0.0.1'],
    [['127.0.0.0/8'], [sent], '203.0.113.7'],
    [['127.0.0.0/8', '203.0.113.0/24'], [sent], '198.51.100.1'],
    // What the caller wrote stands before what the proxy added: the first address that no proxy has is the caller's.
    [['127.0.0.0/8'], ['X-Forwarded-For: 127.0.0.1, 10.0.0.1, 203.0.113.7'], '203.0.113.7'],
    [['127.0.0.0/8'], ['X-Forwarded-For: 198.51.100.1', 'X-Forwarded-For: 203.0.113.7'], '203.0.113.7'],
    // Before so many proxies nobody stands: whoever writes a thousand of their addresses has not all of them looked at.
    [['127.0.0.0/8', '10.0.0.0/8'], [behind(15)], '203.0.113.7'],
    [['127.0.0.0/8', '10.0.0.0/8'], [behind(16)], '10.0.0.16'],
    [['127.0.0.0/8', '10.0.0.0/8'], [behind(1000)], '10.0.0.16'],
    [['127.0.0.0/8'], ['X-Real-IP: 203.0.113.7', 'Forwarded: for=203.0.113.7', 'X_Forwarded_For: 203.0.113.7'], '127.0.0.1'],
  ] as const) {
    const config = { listen: { host: '127.0.0.1', port: 0, trustedProxies } }
    const { gateway, alice } = await gated(t, undefined, { pair, config })
    t.equal((await gateway.ask({ target: `${BASE}/info`, token: alice, lines })).status, 200)
    const line = () => gateway.lines.find((one) => one['msg'] === 'request')
    await until(() => line() !== undefined)
    t.equal(line()?.['client'], client, `${trustedProxies.join(' ')}: ${lines.join(' ')}`)
  }
})
