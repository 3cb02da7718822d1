/**
 * What holds in process where a server has folded, joined or refused before any hook (docs/how-to/connect/in-process.md, "Differences from the proxy"):
 * the request that reaches the runtime is the very one that was decided.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { gated, type GatedOptions, type GatedUpstream } from '../../testing/support/gated.ts'
import { NOT_IN_PROCESS } from '../../testing/support/not-in-process.ts'
import { ask, requestBytes, sendRaw } from '../../testing/support/raw.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { events } from '../../testing/support/upstream.ts'
import { OPEN_POLICY } from '../security/open-policy.ts'
import { BASE, codeIn, run } from '../security/thread-routes.ts'

/** Hooks before an upstream that records. */
const inProcess = (t: Test, options: GatedOptions = {}): Promise<GatedUpstream> =>
  gated(t, events(), { ...options, pair: { client: 'multi-route', upstream: 'multi-route', place: 'in-process' } })

const CLEAR = `${BASE}/threads/clear`

/** What the server in front makes `/threads/clear` of, or nothing at all. */
const FOLDED = [
  `${CLEAR}#x`,
  `${CLEAR}?#/messages`,
  `${CLEAR}/.`,
  `${BASE}/x/../threads/clear`,
  `${BASE}/threads/t1/messages/../../clear`,
  `/..${CLEAR}`,
  `${BASE}/%2e/threads/clear`,
  `${BASE}/threads/x/%2E%2e/clear`,
  `${BASE}/threads\\clear`,
  `/api\\copilotkit/threads/clear`,
  `${BASE}/x\\%2e%2e\\threads/clear`,
  `//other.example${CLEAR}`,
  `//user:secret@other.example${CLEAR}`,
  `///other.example${CLEAR}`,
  `/\\other.example${CLEAR}`,
  `http://other.example${CLEAR}`,
  `https://gateway.example${CLEAR}`,
  `ws://other.example${CLEAR}`,
  '*',
]

void test('a folded target is decided as what it was folded into, and nothing else reaches the runtime', async (t) => {
  const { gateway, upstream, alice, olga } = await inProcess(t)
  for (const target of FOLDED) {
    for (const token of [alice, undefined, 'nonsense']) {
      const answer = await ask(gateway.url, { method: 'POST', target, ...(token === undefined ? {} : { token }) })
      t.ok(answer.status >= 400, `${target}: ${answer.status}`)
    }
  }
  t.equal(upstream.beginnings(), 0)
  for (const target of FOLDED) await ask(gateway.url, { method: 'POST', target, token: olga })
  t.ok(upstream.requests.length > 0, 'an operator may, in whatever spelling')
  for (const { method, target } of upstream.requests) t.equal(`${method} ${target}`, `POST ${CLEAR}`)
})

void test('dot segments lead nobody to another’s thread by way of their own', async (t) => {
  const { gateway, upstream, alice, bob } = await inProcess(t)
  t.equal(await run(gateway, bob, 't1'), 200)
  t.equal(await run(gateway, alice, 't2'), 200)
  const before = upstream.beginnings()
  for (const target of [
    `${BASE}/threads/t1/../t2/messages`,
    `${BASE}/threads/t1/%2e%2e/t2/messages`,
    `${BASE}/threads/t1\\..\\t2/messages`,
    `${BASE}/threads/t1/messages/../../t2/messages`,
    `${BASE}/threads/t2/messages#/../t1`,
  ]) {
    const answer = await ask(gateway.url, { target, token: bob })
    t.same([answer.status, codeIn(answer)], [403, 'not-owner'], target)
  }
  t.equal(upstream.beginnings(), before)
  t.equal((await ask(gateway.url, { target: `${BASE}/threads/t2/../t1/messages`, token: bob })).status, 200)
  t.equal(upstream.requests.at(-1)?.target, `${BASE}/threads/t1/messages`, 'his own arrives as it was decided')
})

void test('of two credentials one is left, which is decided and goes on; joined ones are refused', async (t) => {
  const { gateway, upstream, alice, bob } = await inProcess(t)
  for (const [first, second] of [
    [alice, bob],
    [bob, alice],
  ] as const) {
    await ask(gateway.url, {
      target: `${BASE}/info`,
      lines: [`Authorization: Bearer ${first}`, `Authorization: Bearer ${second}`],
    })
    t.same(upstream.requests.at(-1)?.headers.get('authorization'), [`Bearer ${first}`])
  }
  const joined = await ask(gateway.url, { target: `${BASE}/info`, lines: [`Authorization: Bearer ${alice}, Bearer ${bob}`] })
  t.same([joined.status, codeIn(joined)], [400, 'header-malformed'])
})

void test('of two content types one is left, and the body is written anew all the same', async (t) => {
  const { gateway, upstream, alice } = await inProcess(t)
  const body =
    '{ "threadId": "t1", "runId": "r1", "messages": [], "tools": [], "context": [], "state": {}, "forwardedProps": {} }'
  const framing = ['Content-Type: application/json', 'Content-Type: text/plain', `Content-Length: ${body.length}`]
  t.equal((await ask(gateway.url, { target: `${BASE}/agent/default/run`, token: alice, framing, body })).status, 200)
  t.same(upstream.requests.at(-1)?.headers.get('content-type'), ['application/json'])
  t.equal(upstream.requests.at(-1)?.body.toString(), JSON.stringify(JSON.parse(body)))
})

void test('Host names nothing: whatever it is, the runtime gets the same request', async (t) => {
  const { gateway, upstream, alice } = await inProcess(t)
  for (const host of ['other.example', 'a:1', '[::1]', 'x/api/copilotkit/threads/clear?', 'user:secret@x', null]) {
    await ask(gateway.url, { target: `${BASE}/info`, host, token: alice })
  }
  t.ok(upstream.requests.length >= 3)
  for (const { method, target } of upstream.requests) t.equal(`${method} ${target}`, `GET ${BASE}/info`)
})

void test('TRACE and CONNECT, which fetch does not know, reach nothing', async (t) => {
  const { gateway, upstream, olga } = await inProcess(t)
  for (const method of ['TRACE', 'CONNECT']) {
    const told = await sendRaw(gateway.url, requestBytes({ method, target: CLEAR, token: olga }))
    t.notMatch(told, /^HTTP\/1\.1 [123]/)
    t.notMatch(told, olga, 'nothing is told back')
  }
  t.equal(upstream.beginnings(), 0)
})

void test('anonymous callers are one caller to the limits: no hook is told an address', async (t) => {
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const { gateway } = await inProcess(t, {
    signer,
    policy: OPEN_POLICY,
    config: { authentication: { ...signer.authentication, mode: 'optional' }, limits: { requests: '1/h' } },
  })
  const statuses: number[] = []
  for (let count = 0; count < 3; count += 1) statuses.push((await ask(gateway.url, { target: `${BASE}/info` })).status)
  t.same(statuses, [200, 200, 429], 'whoever sends them')
  t.ok(gateway.lines.filter(({ msg }) => msg === 'request').every(({ client }) => client === '0.0.0.0'))
})

void test('each test that is not run in process is there', (t) => {
  const sources = ['security', 'specification', 'http'].flatMap((folder) => {
    const path = join(import.meta.dirname, '..', folder)
    return readdirSync(path).map((name) => readFileSync(join(path, name), 'utf8'))
  })
  // Some names have a part that stands in a table.
  const whole = sources.join('\n')
  const halves = (name: string): boolean => {
    const words = name.split(' ')
    return words.some((_, at) => at > 2 && [words.slice(0, at), words.slice(at)].every((half) => whole.includes(half.join(' '))))
  }
  const known = (name: string): boolean => whole.includes(name) || halves(name.replace(/^in mode \w+ /, 'in mode ${mode} '))
  for (const name of Object.keys(NOT_IN_PROCESS)) t.ok(known(name), name)
  t.end()
})
