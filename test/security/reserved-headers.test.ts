/**
 * An identity that the caller writes down: whoever trusts `X-Forwarded-User` or the runtime's own `X-Cpki-User-Id` takes it from
 * anybody whom the proxy lets pass. oauth2-proxy stripped such names but not their spelling with `_`, which CGI and WSGI servers
 * read as `-` (CVE-2025-64484); the runtime forwards every `x-*` header that it gets to the agent (runtime-behaviour.md, "Routes"). Few headers
 * pass here at all, none with a `_`, and none of these whatever the configuration says.
 */
import { test } from 'tap'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { prepare } from '../../src/snapshot/load.ts'
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { events } from '../../testing/support/upstream.ts'

const TARGET = '/api/copilotkit/info'
const FORGED = 'forged-by-the-caller'

/** Names by which somebody behind a proxy knows who is asking, from where, or for what. */
const NAMES = [
  'X-Cpki-User-Id',
  'X-Cpki-Memory-Grant',
  'X-Cpki-Anything',
  'X-Threadwarden-User',
  'X-Threadwarden-Assertion',
  'X-User-Id',
  'X-User',
  'X-Username',
  'X-User-Email',
  'X-User-Roles',
  'X-Remote-User',
  'Remote-User',
  'X-Auth-Request-User',
  'X-Auth-Request-Email',
  'X-Auth-User',
  'X-Authenticated-User',
  'X-Authenticated-Userid',
  'X-Consumer-Id',
  'X-Tenant-Id',
  'X-Organization-Id',
  'X-Service-Token',
  'X-Api-Key',
  'X-Amzn-Oidc-Identity',
  'X-Goog-Authenticated-User-Email',
  'X-Ms-Client-Principal',
  'X-Client-Cert',
  'X-Ssl-Client-S-Dn',
  'X-Webauth-User',
  'Impersonate-User',
  'Cf-Access-Jwt-Assertion',
  'Tailscale-User-Login',
  'X-Forwarded-User',
  'X-Forwarded-Email',
  'X-Forwarded-Groups',
  'X-Forwarded-Access-Token',
  'X-Real-Ip',
  'Forwarded',
  'Via',
  'Cookie',
  'Proxy-Authorization',
  'X-Request-Id',
  'X-Copilotcloud-Public-Api-Key',
  'Last-Event-Id',
  'Content-Encoding',
]

/** The ways to write a name that other servers take for the same. */
const SPELLINGS: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name.toLowerCase(),
  (name) => name.toUpperCase(),
  (name) => name.replaceAll('-', '_'),
  (name) => name.replaceAll('-', '_').toUpperCase(),
  (name) => name.replace('-', '_'),
  (name) => name.replace(/-(?=[^-]*$)/, '_'),
  (name) => `HTTP_${name.replaceAll('-', '_').toUpperCase()}`,
  (name) => name.replaceAll('-', '.'),
  (name) => name.replaceAll('-', ''),
  (name) => `${name}_`,
  (name) => `_${name}`,
]

/** What the gateway sends of its own account and lets through of a caller who sends the usual headers. */
const USUAL = ['accept-encoding', 'authorization', 'connection', 'host', 'x-request-id']

void testFirstPair('no identity header of a caller arrives, in any spelling, once or twice', async (t, pair) => {
  const { client } = pair
  const { gateway, upstream, alice } = await gated(t, undefined, { pair })
  for (const name of NAMES) {
    const lines = [...new Set(SPELLINGS.map((spell) => spell(name)))].flatMap((one) => [`${one}: ${FORGED}`, `${one}:${FORGED}`])
    // A content encoding twice is refused; on a request without a body it says nothing, and ends here once.
    const sent = name === 'Content-Encoding' ? lines.slice(0, 1) : lines
    const { status } = await gateway.ask({ target: TARGET, token: alice, lines: sent })
    // An envelope has a body, and one that is said to be encoded is none.
    const encoded = name === 'Content-Encoding' && client === 'single-route'
    t.equal(status, encoded ? 404 : 200, name)
    if (encoded) continue
    const request = upstream.requests.at(-1)
    t.same([...(request?.headers.keys() ?? [])].sort(), USUAL, name)
    t.notMatch(request?.rawHeaders.join('\n'), FORGED)
  }
  t.equal(upstream.requests.length, NAMES.length - (client === 'single-route' ? 1 : 0))
})

void testFirstPair('nor does it with a body, nor from an operator', async (t, pair) => {
  const { gateway, upstream, olga } = await gated(t, events(), { pair })
  const names = NAMES.filter((name) => name !== 'Content-Encoding')
  const body = JSON.stringify(runInput('t1'))
  const target = '/api/copilotkit/agent/default/run'
  for (const spell of SPELLINGS.slice(0, 5)) {
    const lines = names.map((name) => `${spell(name)}: ${FORGED}`)
    t.equal((await gateway.ask({ target, token: olga, lines, body })).status, 200)
    const request = upstream.requests.at(-1)
    t.same([...(request?.headers.keys() ?? [])].sort(), [...USUAL, 'content-length', 'content-type'].sort())
    t.notMatch(request?.rawHeaders.join('\n'), FORGED)
  }
  t.equal(upstream.requests.length, 5)
})

void testFirstPair('a name that is let through opens no other spelling, and no value makes a second line', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, undefined, { pair, config: { forwardHeaders: ['X-Team-Id'] } })
  const others = SPELLINGS.map((spell) => spell('X-Team-Id')).filter((name) => name.toLowerCase() !== 'x-team-id')
  const usual = ['Accept-Language', 'User-Agent'].flatMap((name) => SPELLINGS.slice(3).map((spell) => spell(name)))
  const alone = [...others, ...usual].map((name) => `${name}: ${FORGED}`)
  t.equal((await gateway.ask({ target: TARGET, token: alice, lines: alone })).status, 200)
  t.same([...(upstream.requests.at(-1)?.headers.keys() ?? [])].sort(), USUAL)

  const lines = ['x-team-ID: honest', ...others.map((name) => `${name}: ${FORGED}`)]
  t.equal((await gateway.ask({ target: TARGET, token: alice, lines })).status, 200)
  t.same(upstream.requests.at(-1)?.headers.get('x-team-id'), ['honest'])
  t.notMatch(upstream.requests.at(-1)?.rawHeaders.join('\n'), FORGED)

  for (const line of [
    `X-Team-Id: a\rX-Cpki-User-Id: ${FORGED}`,
    `X-Team-Id: a\nX-Cpki-User-Id: ${FORGED}`,
    `X-Team-Id: a\r X-Cpki-User-Id: ${FORGED}`,
    `X-Team-Id: a\u0000X-Cpki-User-Id: ${FORGED}`,
    `X-Team-Id: a\r\n X-Cpki-User-Id: ${FORGED}`,
    `X-Cpki-User-Id : ${FORGED}`,
    `X-Cpki-User-Id\t: ${FORGED}`,
    ` X-Cpki-User-Id: ${FORGED}`,
    `X-Cpki-User-Id\u0000: ${FORGED}`,
    `X-Cpki-User-Id\u00a0: ${FORGED}`,
    `X Cpki User Id: ${FORGED}`,
    `X-Cpki-User-Id(: ${FORGED}`,
    `:x-cpki-user-id: ${FORGED}`,
    `: ${FORGED}`,
    `X-Cpki-User-Id ${FORGED}`,
  ]) {
    // A line that is told apart by its beginning must not be the first one, which nothing can be folded into.
    const answer = await gateway.ask({ target: TARGET, token: alice, lines: ['X-A: 1', line] })
    t.match(answer, { status: 400, body: '"code":"header-malformed"' }, JSON.stringify(line))
  }
  const split = `X-Team-Id: a%0d%0aX-Cpki-User-Id: ${FORGED}`
  t.equal((await gateway.ask({ target: TARGET, token: alice, lines: [split] })).status, 200)
  t.equal(upstream.requests.length, 3)
  t.notOk(upstream.requests.at(-1)?.headers.has('x-cpki-user-id'))
})

void test('the configuration can let none of the reserved names through', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'threadwarden.yaml')
  const faults = (name: string): boolean => {
    const config = {
      version: 1,
      upstream: { url: 'http://127.0.0.1:1', basePath: '/', headers: { 'X-Service-Token': 's' } },
      ownership: { unknownThread: 'claim' },
      authentication: { mode: 'off' },
      forwardHeaders: [name],
    }
    writeFileSync(file, JSON.stringify(config))
    return !prepare(file, {}).ok
  }
  for (const name of [
    'X-Cpki-User-Id',
    'X-Cpki-Memory-Grant',
    'X-Cpki',
    'X-Threadwarden-User',
    'X-Forwarded-User',
    'X-Forwarded',
    'Forwarded',
    'X-Real-Ip',
    'X-Original-Url',
    'X-Rewrite-Url',
    'X-Http-Method-Override',
    'Cookie',
    'Host',
    'Connection',
    'X-Service-Token',
  ]) {
    // oxfmt-ignore
    for (const spell of SPELLINGS.slice(0, 6)) t.ok(faults(spell(name)), spell(name))
  }
  t.notOk(faults('X-Team-Id'))
  t.end()
})
