/**
 * Callers who are let pass for what they look like: oauth2-proxy took whoever sent the user agent of a health probe for one, on any
 * path (GHSA-5hvv-m4w4-gf6v), and anybody without a user agent at all (its issue 649). Here no user agent, address, path, cookie or
 * other place for a token stands in for the one credential; health is served on a listener of its own.
 */
import { test } from 'tap'
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { methodsAt } from '../../testing/support/pair.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import type { RawRequest } from '../../testing/support/raw.ts'
import { rows } from '../../testing/support/rows.ts'

const BASE = '/api/copilotkit'

/** User agents of probes, balancers, crawlers and of the gateway's own kind. */
const AGENTS = [
  '',
  'kube-probe/1.33',
  'GoogleHC/1.0',
  'GoogleStackdriverMonitoring-UptimeChecks(https://cloud.google.com/monitoring)',
  'ELB-HealthChecker/2.0',
  'Amazon-Route53-Health-Check-Service (ref 1)',
  'Envoy/HC',
  'Edge Health Probe',
  'HAProxy',
  'Consul Health Check',
  'Prometheus/3.0',
  'Blackbox Exporter/0.27',
  'Datadog Agent/7.0.0',
  'Pingdom.com_bot_version_1.4',
  'UptimeRobot/2.0',
  'Googlebot/2.1',
  'node',
  'undici',
  'threadwarden',
  'CopilotKit/1.75.0',
  'localhost',
]

/** Paths that are open on many servers. */
const PATHS = [
  '/',
  '/livez',
  '/readyz',
  '/startupz',
  '/healthz',
  '/health',
  '/ping',
  '/status',
  '/metrics',
  '/ready',
  '/favicon.ico',
  '/robots.txt',
  '/index.html',
  '/login',
  '/oauth2/auth',
  '/public/x',
  '/static/x.js',
  '/assets/x.css',
  '/.well-known/jwks.json',
  '/.well-known/openid-configuration',
  '/.well-known/acme-challenge/x',
  BASE,
  `${BASE}/info`,
  `${BASE}/info.css`,
  `${BASE}/info.js`,
  `${BASE}/livez`,
  `${BASE}/healthz`,
  `${BASE}/threads`,
  `${BASE}/threads/t1/messages`,
  `${BASE}/nowhere`,
]

void testFirstPair('no user agent is let in, on any path', async (t, pair) => {
  const { gateway, upstream } = await gated(t, undefined, { pair })
  for (const agent of AGENTS) {
    for (const target of ['/', '/healthz', `${BASE}/info`, `${BASE}/threads`]) {
      const answer = await gateway.ask({ target, lines: [`User-Agent: ${agent}`] })
      t.match(answer, { status: 401, body: '"code":"credential-missing"' }, `${agent} ${target}`)
    }
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('no path is open, whatever the method and whether a body comes with it', async (t, pair) => {
  const { gateway, upstream } = await gated(t, undefined, { pair })
  for (const target of PATHS) {
    for (const method of methodsAt(pair.place, ['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'])) {
      const answer = await gateway.ask({ method, target })
      t.equal(answer.status, 401, `${method} ${target}`)
      t.equal(answer.headers.get('www-authenticate'), 'Bearer')
    }
    t.equal((await gateway.ask({ target, body: '{"method":"info"}' })).status, 401, `POST ${target}`)
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair(
  'no address is let in: neither the one that the gateway listens on nor one that the request names',
  async (t, pair) => {
    const { gateway, upstream } = await gated(t, undefined, { pair })
    const own = new URL(gateway.url).host
    for (const host of [own, 'localhost', '127.0.0.1', '[::1]', new URL(gateway.healthUrl).host, new URL(upstream.url).host]) {
      t.equal((await gateway.ask({ target: `${BASE}/info`, host })).status, 401, host)
      t.equal((await gateway.ask({ target: '/livez', host })).status, 401, host)
    }
    t.equal((await gateway.ask({ target: `${BASE}/info`, version: 'HTTP/1.0', host: null })).status, 401)
    t.equal(upstream.beginnings(), 0)
  },
)

void testFirstPair('no other place for a token is looked at', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, undefined, { pair })
  const basic = Buffer.from(`alice:${alice}`).toString('base64')
  for (const lines of [
    [`Cookie: session=${alice}`],
    [`Cookie: access_token=${alice}; Authorization=Bearer ${alice}`],
    [`Cookie: __Host-token=${alice}`],
    [`X-Access-Token: ${alice}`],
    [`X-Auth-Token: ${alice}`],
    [`X-Api-Key: ${alice}`],
    [`X-Jwt-Assertion: ${alice}`],
    [`X-Forwarded-Access-Token: ${alice}`],
    [`Proxy-Authorization: Bearer ${alice}`],
    [`Sec-WebSocket-Protocol: bearer, ${alice}`],
    [`Token: ${alice}`],
    [`Bearer: ${alice}`],
    [`Authorization-Bearer: ${alice}`],
    [`DPoP: ${alice}`],
  ]) {
    const answer = await gateway.ask({ target: `${BASE}/info`, lines })
    t.match(answer, { status: 401, body: '"code":"credential-missing"' }, lines.join().slice(0, 24))
  }
  for (const value of [
    `Basic ${basic}`,
    `Basic ${alice}`,
    `Token ${alice}`,
    `JWT ${alice}`,
    `DPoP ${alice}`,
    `bearer ${alice}`,
    `BEARER ${alice}`,
    `Bearer  ${alice}`,
    `Bearer\t${alice}`,
    `Bearer:${alice}`,
    `Bearer=${alice}`,
    alice,
    'Bearer',
    'Negotiate YQ==',
  ]) {
    // oxfmt-ignore
    const answer = await gateway.ask({ target: `${BASE}/info`, lines: [`Authorization: ${value}`] })
    t.match(answer, { status: 401, body: '"code":"credential-invalid"' }, value.slice(0, 12))
  }
  // RFC 6750 §2.2: a token may stand in a form, where a server wants it to.
  const form = `access_token=${alice}`
  for (const request of [
    { target: BASE, body: form, framing: ['Content-Type: application/x-www-form-urlencoded', `Content-Length: ${form.length}`] },
    { target: BASE, body: JSON.stringify({ method: 'info', access_token: alice }) },
    {
      target: `${BASE}/agent/default/run`,
      body: JSON.stringify(runInput('t1', 'hello', { forwardedProps: { authorization: `Bearer ${alice}` } })),
    },
  ] satisfies RawRequest[]) {
    t.match(await gateway.ask(request), { status: 401, body: '"code":"credential-missing"' })
  }
  t.equal(upstream.beginnings(), 0)
  t.same(rows(gateway.folder), [], 'nothing is claimed for nobody')
})

void test('a preflight is answered here, and only a whole one', async (t) => {
  const { gateway, upstream } = await gated(t, undefined, { config: { cors: { origins: ['https://app.example'] } } })
  const origin = 'Origin: https://app.example'
  const wanted = 'Access-Control-Request-Method: POST'
  for (const target of [BASE, `${BASE}/info`, `${BASE}/threads/clear`, `${BASE}/nowhere`, '/']) {
    t.equal((await gateway.ask({ method: 'OPTIONS', target, lines: [origin, wanted] })).status, 204, target)
    for (const lines of [[], [origin], [wanted], ['Origin_: https://app.example', wanted]]) {
      t.equal((await gateway.ask({ method: 'OPTIONS', target, lines })).status, 401, `${target} ${lines.join(' ')}`)
    }
    for (const method of ['GET', 'POST', 'HEAD', 'TRACE']) {
      t.equal((await gateway.ask({ method, target, lines: [origin, wanted] })).status, 401, `${method} ${target}`)
    }
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('with a credential all of these callers are served', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, undefined, { pair })
  for (const agent of AGENTS) {
    const answer = await gateway.ask({ target: `${BASE}/info`, token: alice, lines: [`User-Agent: ${agent}`] })
    t.equal(answer.status, 200, agent)
  }
  t.same(
    upstream.requests.map(({ headers }) => headers.get('user-agent')),
    AGENTS.map((agent) => [agent]),
  )
})
