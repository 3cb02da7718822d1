/**
 * A method that is decided on and another that is acted on: override headers (Symfony CVE-2019-10913), HEAD routed as GET, TRACE
 * that tells headers back, CONNECT tunnels, and Upgrade, after which nobody looks any more (h2c smuggling; Envoy CVE-2026-73548,
 * where what followed an unanswered Upgrade was read as another request). The gateway knows one method a request, the one on its
 * first line, and speaks HTTP/1 alone.
 */
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { openRaw, sendRaw } from '../../testing/support/raw.ts'
import { BASE, codeIn } from './thread-routes.ts'

const INFO = `${BASE}/info`

/** The first bytes of a client that speaks HTTP/2 without asking (RFC 9113 §3.4), with an empty SETTINGS frame. */
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u0000\u0000\u0000\u0004\u0000\u0000\u0000\u0000\u0000'

const UPGRADES: Readonly<Record<string, readonly string[]>> = {
  websocket: [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol: graphql-ws',
  ],
  h2c: ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
  'h2c, its settings not named': ['Connection: Upgrade', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
  'h2c, not named at all': ['Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
  'h2c in capitals': ['CONNECTION: UPGRADE', 'UPGRADE: H2C', 'HTTP2-SETTINGS: AAMAAABkAAQAAP__'],
  h2: ['Connection: Upgrade', 'Upgrade: h2'],
  'HTTP/2.0': ['Connection: Upgrade', 'Upgrade: HTTP/2.0'],
  TLS: ['Connection: Upgrade', 'Upgrade: TLS/1.2'],
  'a list': ['Connection: keep-alive, Upgrade', 'Upgrade: h2c, websocket'],
  twice: ['Connection: Upgrade', 'Upgrade: h2c', 'Upgrade: websocket'],
  spdy: ['Connection: Upgrade', 'Upgrade: SPDY/3.1'],
  'connect-udp': ['Connection: Upgrade', 'Upgrade: connect-udp', 'Capsule-Protocol: ?1'],
}

void testEachPair('Upgrade is ignored: the request is answered as the one it is', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  for (const [name, lines] of Object.entries(UPGRADES)) {
    t.equal((await gateway.ask({ target: INFO, lines })).status, 401, `${name} without a token`)
    t.equal((await gateway.ask({ target: INFO, lines, token: 'x.y.z' })).status, 401, `${name} with a bad token`)
    t.equal((await gateway.ask({ target: `${BASE}/threads/clear`, method: 'POST', lines, token: alice })).status, 403)
    // No single-route runtime has it.
    const feed = pair.upstream === 'single-route' ? 404 : 403
    t.equal((await gateway.ask({ target: `${BASE}/cpk-debug-events`, lines, token: alice })).status, feed)
    t.equal((await gateway.ask({ target: INFO, lines, token: alice })).status, 200, name)
  }
  t.equal(upstream.requests.length, Object.keys(UPGRADES).length)
  for (const { target, headers } of upstream.requests) {
    t.equal(target, INFO)
    for (const name of headers.keys()) t.notMatch(name, /^(?:upgrade|http2-settings|sec-websocket|capsule)/)
    t.same(headers.get('connection'), ['keep-alive'])
  }
})

void testEachPair('a run that asks for an Upgrade is the run that it is', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  const input = runInput('t1')
  const lines = UPGRADES['h2c'] ?? []
  const request = { target: `${BASE}/agent/default/run`, token: alice, lines, body: JSON.stringify(input) }
  t.equal((await gateway.ask(request)).status, 200)
  t.match(upstream.requests, [{ method: 'POST', target: `${BASE}/agent/default/run`, json: { threadId: 't1' } }])
})

void testEachPair(
  'behind an Upgrade nothing is read: not as HTTP/1, with the best of tokens, and not as another protocol',
  async (t, pair) => {
    const { gateway, alice, upstream } = await gated(t, undefined, { pair })
    const behind = [
      gateway.bytes({ target: `${BASE}/threads`, token: alice }),
      gateway.bytes({ target: `${BASE}/agent/default/run`, token: alice, body: JSON.stringify(runInput('t1')) }),
      Buffer.from([0x81, 0x85, 0, 0, 0, 0, ...Buffer.from('hello')]),
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    ]
    for (const [name, lines] of Object.entries(UPGRADES)) {
      const upgrade = gateway.bytes({ target: INFO, lines, token: alice, keepAlive: true })
      for (const next of behind) {
        const caller = await openRaw(gateway.url)
        caller.write(upgrade)
        await caller.until('HTTP/1.1 200')
        caller.write(next)
        t.equal((await caller.ended()).match(/HTTP\/1\.1 /g)?.length, 1, `${name}: one answer`)
        const hasty = await openRaw(gateway.url)
        hasty.write(Buffer.concat([upgrade, next]))
        // What can't be read as HTTP behind a request whose answer is due ends the connection before it.
        t.ok(((await hasty.ended()).match(/HTTP\/1\.1 /g)?.length ?? 0) <= 1, `${name}: at most one answer`)
      }
    }
    t.same(new Set(upstream.requests.map((request) => request.target)), new Set([INFO]))
  },
)

void testEachPair('what comes in one piece with an Upgrade, frames or another request, goes nowhere', async (t, pair) => {
  const { gateway, alice, olga, upstream } = await gated(t, undefined, { pair })
  const clear = gateway.bytes({ method: 'POST', target: `${BASE}/threads/clear`, token: olga }).toString('latin1')
  for (const frames of [
    clear,
    PREFACE,
    `${PREFACE}${clear}`,
    '\u0081\u0085\u0000\u0000\u0000\u0000hello',
    `\u0082\u007e\u0002\u0000${clear}`,
  ]) {
    for (const upgrade of ['websocket', 'h2c'] as const) {
      const connection = await openRaw(gateway.url)
      const first = gateway.bytes({ target: INFO, token: alice, lines: UPGRADES[upgrade] ?? [], keepAlive: true })
      connection.write(Buffer.concat([first, Buffer.from(frames, 'latin1')]))
      t.match(await connection.until('HTTP/1.1 '), /^HTTP\/1\.1 200 /, upgrade)
      connection.destroy()
    }
  }
  t.equal((await gateway.ask({ target: INFO, token: alice })).status, 200)
  t.equal(upstream.beginnings(), 11, 'each that asked, and the last one')
  for (const { target } of upstream.requests) t.equal(target, INFO)
})

void testEachPair('HTTP/2 without asking is no request', async (t, pair) => {
  const { gateway, upstream } = await gated(t, undefined, { pair })
  t.match(await sendRaw(gateway.url, Buffer.from(PREFACE, 'latin1')), /^HTTP\/1\.1 400 /)
  t.match(await sendRaw(gateway.url, Buffer.from(`${PREFACE}${gateway.bytes({ target: INFO }).toString()}`, 'latin1')), /^HTTP\/1\.1 400 /) // oxfmt-ignore
  t.equal(upstream.beginnings(), 0)
})

void testEachPair('methods that a route does not have are 405 and name those it has', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  for (const [method, path, allow] of [
    ['HEAD', 'info', 'GET'],
    ['HEAD', 'threads/t1/messages', 'GET'],
    ['HEAD', 'threads', 'GET'],
    ['HEAD', 'cpk-debug-events', 'GET'],
    ['OPTIONS', 'info', 'GET'],
    ['DELETE', 'info', 'GET'],
    ['POST', 'info', 'GET'],
    ['PROPFIND', 'info', 'GET'],
    ['TRACE', 'info', 'GET'],
    ['TRACE', 'threads/clear', 'POST'],
    ['SUBSCRIBE', 'threads/subscribe', 'POST'],
    ['SEARCH', 'threads', 'GET'],
    ['QUERY', 'threads', 'GET'],
    ['GET', 'agent/default/run', 'POST'],
    ['PUT', 'agent/default/run', 'POST'],
    ['GET', 'agent/default/stop/t1', 'POST'],
    ['GET', 'threads/clear', 'POST'],
    ['PATCH', 'threads/clear', 'POST'],
    ['DELETE', 'threads/clear', 'POST'],
    ['PUT', 'threads/t1', 'PATCH, DELETE'],
    ['PURGE', 'threads/t1', 'PATCH, DELETE'],
  ] as const) {
    const target = `${BASE}/${path}`
    t.equal((await gateway.ask({ method, target })).status, 401, `${method} ${path} without a token`)
    const answer = await gateway.ask({ method, target, token: alice })
    t.equal(answer.status, 405, `${method} ${path}`)
    t.equal(answer.headers.get('allow'), allow)
    t.notMatch(answer.body, alice, 'nothing is told back')
  }
  t.equal(upstream.beginnings(), 0)
})

void testEachPair('a method in another case, or of other letters, is none', async (t, pair) => {
  const { client } = pair
  const { gateway, olga, upstream } = await gated(t, undefined, { pair })
  for (const method of [
    'get',
    'Get',
    'gET',
    'post',
    'Post',
    'GETS',
    'GE',
    'G\u0000ET',
    'GET\t',
    'G ET',
    'ＧＥＴ',
    '"GET"',
    'GET,POST',
    '*',
    'CLEAR',
    'PRI',
  ]) {
    // oxfmt-ignore
    for (const path of ['info', 'threads/clear']) {
      const answer = await gateway.ask({ method, target: `${BASE}/${path}`, token: olga })
      // In an envelope it is a word like others, that no route has for its method.
      const none = client === 'single-route' ? [405, 'method-not-allowed'] : [400, 'header-malformed']
      t.same([answer.status, codeIn(answer)], none, `${method} ${path}`)
    }
  }
  t.equal(upstream.beginnings(), 0)
})

void testEachPair('CONNECT opens nothing, to the upstream or to anybody else', async (t, pair) => {
  const { gateway, olga, upstream } = await gated(t, undefined, { pair })
  for (const target of [new URL(upstream.url).host, 'other.example:443', `${BASE}/info`, '/', '*', upstream.url]) {
    const text = await sendRaw(
      gateway.url,
      Buffer.concat([
        gateway.bytes({ method: 'CONNECT', target, token: olga, keepAlive: true }),
        gateway.bytes({ method: 'POST', target: `${BASE}/threads/clear`, token: olga }),
      ]),
    )
    t.match(text, /^HTTP\/1\.1 400 /, target)
    t.equal(text.split('HTTP/1.1').length, 2, 'one answer')
  }
  t.equal(upstream.beginnings(), 0)
})

void testEachPair('a header, a query or a body that names another method is no method', async (t, pair) => {
  const { gateway, alice, olga, upstream } = await gated(t, undefined, { pair, config: { forwardHeaders: ['x-method'] } })
  const names = ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'X_HTTP_Method_Override', 'x-http-METHOD-override', 'X-Method', '_method', 'Method', ':method', 'X-Original-Method', 'X-Forwarded-Method'] // oxfmt-ignore
  for (const name of names.filter((one) => one !== ':method')) {
    const lines = [`${name}: DELETE`]
    t.equal((await gateway.ask({ target: INFO, token: alice, lines })).status, 200, name)
    // Nor does one make a method fit that does not.
    t.equal((await gateway.ask({ target: `${BASE}/threads/clear`, token: olga, lines: [`${name}: POST`] })).status, 405, name)
    t.equal((await gateway.ask({ method: 'POST', target: INFO, token: alice, lines: [`${name}: GET`] })).status, 405, name)
  }
  t.equal((await gateway.ask({ target: INFO, token: alice, lines: [':method: DELETE'] })).status, 400)
  t.equal((await gateway.ask({ target: `${INFO}?_method=DELETE`, token: alice })).status, 200)
  const form = { framing: ['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 14'], body: '_method=DELETE' }
  t.equal((await gateway.ask({ target: `${BASE}/threads/clear`, token: olga, ...form })).status, 415)
  for (const { method, target, headers } of upstream.requests) {
    t.equal(`${method} ${target}`, `GET ${INFO}`)
    t.same([...headers.keys()].filter((name) => name.includes('method') && name !== 'x-method'), []) // oxfmt-ignore
  }
  t.equal(upstream.requests.length, names.length)
})
