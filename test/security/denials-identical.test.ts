/**
 * An answer that tells a thread of somebody else's from one that does not exist: by status, text, a header, their order, a
 * length, or by closing the connection (CWE-204; RFC 9110 §15.5.4 lets a server hide a forbidden resource behind 404, which hides
 * nothing if the two 404s differ). On the raw socket the answers are the same bytes, but for date and request id, for every
 * method, body and framing, and on routes that hide they are those of a route that isn't there. How long they take is
 * measured by scripts/denial-timing.ts.
 */
import { gateBefore, gated, type Gated, type GatedUpstream } from '../../testing/support/gated.ts'
import type { TestGateway } from '../../testing/support/gateway.ts'
import { methodsAt, type Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { sendRaw, type RawRequest } from '../../testing/support/raw.ts'
import { events } from '../../testing/support/upstream.ts'
import { ruled } from '../../testing/support/policies.ts'
import { BASE, BODY_ROUTES, BODY_TARGETS, PATH_ROUTES, run, type ThreadRoute } from './thread-routes.ts'

// Of one length, because an id stands in what is sent.
const [FOREIGN, MISSING, DELETED, OWN_DELETED, OWN] = ['foreign', 'missing', 'deleted', 'my-gone', 'my-own1']

const SETTINGS = { limits: { body: '1KiB', runBody: '1KiB' }, cors: { origins: ['https://chat.example'], credentials: true } }

/** Threads of bob's and alice's, one of each deleted. */
async function seeded(t: Parameters<typeof gated>[0], pair: Pair): Promise<GatedUpstream> {
  const gate = await gated(t, events(), { pair, config: SETTINGS })
  const { gateway, alice, bob } = gate
  for (const id of [FOREIGN, DELETED]) t.equal(await run(gateway, bob, id), 200)
  for (const id of [OWN, OWN_DELETED]) t.equal(await run(gateway, alice, id), 200)
  for (const [token, id] of [
    [bob, DELETED],
    [alice, OWN_DELETED],
  ] as const) {
    t.equal((await gateway.ask({ method: 'DELETE', target: `${BASE}/threads/${id}`, token })).status, 200)
  }
  return gate
}

/** A policy that hides every thread but the caller's own, on every route. */
const HIDING = ruled([
  { routes: ['info'], allow: ['signed-in'] },
  {
    // oxfmt-ignore
    routes: [
      'agent/run', 'agent/connect', 'agent/suggest', 'agent/stop', 'annotate', 'threads/messages', 'threads/events', 'threads/state',
      'threads/update', 'threads/archive',
    ],
    allow: ['signed-in'],
    threads: ['own'],
    refusal: 404,
  },
])

/** Everything that comes back, without what no two answers share. */
async function bytesOf(gateway: TestGateway, request: RawRequest): Promise<string> {
  const text = await sendRaw(gateway.url, gateway.bytes(request))
  return text.replace(/\r\n(date|x-request-id): [^\r]*/gi, '\r\n$1: -')
}

/** The same on a connection that another request follows: what comes after the answer is part of it. */
async function bytesOnKept(gateway: TestGateway, request: RawRequest): Promise<string> {
  const next = gateway.bytes({ target: `${BASE}/nowhere`, ...(request.token === undefined ? {} : { token: request.token }) })
  const text = await sendRaw(gateway.url, Buffer.concat([gateway.bytes({ ...request, keepAlive: true }), next]))
  return text.replace(/\r\n(date|x-request-id): [^\r]*/gi, '\r\n$1: -')
}

const large = `{"agentId":"${'x'.repeat(2000)}"}`

/** One request in many variations that an honest client would not make. */
function variations({ place }: Pair, route: ThreadRoute): readonly ThreadRoute[] {
  const vary = (name: string, more: (request: RawRequest, id: string) => Partial<RawRequest>): ThreadRoute => ({
    name: `${route.name}, ${name}`,
    to: (id) => ({ ...route.to(id), ...more(route.to(id), id) }),
  })
  const bodies: Record<string, string> = {
    'an empty object': '{}',
    'a body that is none': 'x',
    'half a body': '{"threadId":"',
    'a body that is too large': large,
    'a key twice': '{"agentId":"a","agentId":"b"}',
    'an agent that is none': '{"agentId":"a b"}',
    'an array': '[]',
  }
  return [
    route,
    ...Object.entries(bodies).map(([name, body]) => vary(name, () => ({ body }))),
    ...BODY_TARGETS.map(({ name, body }) => vary(`the body of ${name}`, (_, id) => ({ body: JSON.stringify(body(id)) }))),
    vary('another type', ({ body = 'x' }) => ({ body, framing: ['Content-Type: text/plain', `Content-Length: ${body.length}`] })),
    vary('a coding', ({ body = '{}' }) => ({
      body,
      framing: ['Content-Type: application/json', 'Content-Encoding: gzip', `Content-Length: ${body.length}`],
    })),
    vary('chunks', ({ body = '{}' }) => ({
      body: `${body.length.toString(16)}\r\n${String(body)}\r\n0\r\n\r\n`,
      framing: ['Content-Type: application/json', 'Transfer-Encoding: chunked'],
    })),
    vary('a query', ({ target }) => ({ target: `${target}?agentId=default&x=1` })),
    vary('a query that is refused', ({ target }) => ({ target: `${target}?limit=1&limit=2` })),
    vary('a page of the client', () => ({ lines: ['Origin: https://chat.example'] })),
    vary('another page', () => ({ lines: ['Origin: https://evil.example'] })),
    vary('conditions', () => ({ lines: ['If-None-Match: *', 'Range: bytes=0-0', 'Accept: text/html', 'Accept-Encoding: gzip'] })),
    vary('an expectation', () => ({ lines: ['Expect: 100-continue'] })),
    vary('HTTP/1.0', () => ({ version: 'HTTP/1.0' })),
    ...methodsAt(place, ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'get', 'X']).map(
      (method) => vary(method, () => ({ method })),
    ),
  ]
}

/** Compares what callers get for these threads with what they get for the foreign one. */
async function compare(
  t: Parameters<typeof gated>[0],
  gate: Gated,
  routes: readonly ThreadRoute[],
  others: readonly string[],
  bytes = bytesOf,
): Promise<void> {
  const { gateway, alice, olga } = gate
  // Who asks makes no difference to what an odd request is told; one of each is enough there.
  for (const token of bytes === bytesOf ? [alice] : [alice, olga, undefined]) {
    for (const { name, to } of routes) {
      const asked = [FOREIGN, ...others].map((id) => ({ ...to(id), ...(token === undefined ? {} : { token }) }))
      const [foreign, ...answers] = await Promise.all(asked.map((request) => bytes(gateway, request)))
      t.match(foreign, /^(?:HTTP\/1\.1 100 Continue\r\n\r\n)?HTTP\/1\.1 4\d\d /, name)
      t.same([...new Set(answers)], [foreign], name)
    }
  }
}

void testEachPair(
  'the shipped policy hides events and state: a foreign thread is a missing one, byte for byte',
  async (t, pair) => {
    const gate = await seeded(t, pair)
    const { gateway, alice, upstream } = gate
    const before = upstream.beginnings()
    const hidden = PATH_ROUTES.filter(({ name }) => name === 'threads/events' || name === 'threads/state')
    t.equal(hidden.length, 2)
    await compare(
      t,
      gate,
      hidden.flatMap((route) => variations(pair, route)),
      [MISSING, DELETED, OWN_DELETED],
    )
    await compare(t, gate, hidden, [MISSING, DELETED, OWN_DELETED], bytesOnKept)
    t.equal(upstream.beginnings(), before)
    for (const { name, to } of hidden) t.equal((await gateway.ask({ ...to(OWN), token: alice })).status, 200, name)
    t.equal(upstream.beginnings(), before + 2)
  },
)

void testEachPair('routes that answer 403 tell a foreign thread from a missing one no more', async (t, pair) => {
  const gate = await seeded(t, pair)
  const before = gate.upstream.beginnings()
  const open = PATH_ROUTES.filter(({ name }) => name !== 'threads/events' && name !== 'threads/state')
  const annotate = BODY_ROUTES.filter(({ name }) => name === 'annotate')
  await compare(
    t,
    gate,
    [...open, ...annotate].flatMap((route) => variations(pair, route)),
    [MISSING, DELETED, OWN_DELETED],
  )
  await compare(t, gate, [...open, ...annotate], [MISSING, DELETED, OWN_DELETED], bytesOnKept)
  t.equal(gate.upstream.beginnings(), before)
})

void testEachPair(
  'a deleted thread of somebody else’s is one that they have, on routes that open unknown ones too',
  async (t, pair) => {
    const gate = await seeded(t, pair)
    const before = gate.upstream.beginnings()
    await compare(
      t,
      gate,
      BODY_ROUTES.flatMap((route) => [route]),
      [DELETED],
    )
    t.equal(gate.upstream.beginnings(), before)
  },
)

void testEachPair(
  'where a policy hides threads on every route, all of them answer alike, and as a route that isn’t there',
  async (t, pair) => {
    const shipped = await seeded(t, pair)
    const { upstream, alice, signer } = shipped
    const config = { ...SETTINGS, ownership: { unknownThread: 'deny' } }
    const gate = await gateBefore(t, upstream.url, { pair, config, policy: HIDING, shared: shipped.gateway.folder, signer })
    const before = upstream.beginnings()
    const routes = [...PATH_ROUTES, ...BODY_ROUTES]
    await compare(t, gate, routes, [MISSING, DELETED, OWN_DELETED], bytesOnKept)
    await compare(
      t,
      gate,
      BODY_ROUTES.slice(0, 1).flatMap((route) => variations(pair, route)),
      [MISSING, DELETED, OWN_DELETED],
    )
    for (const { name, to } of routes) {
      for (const bytes of [bytesOf, bytesOnKept]) {
        const hidden = await bytes(gate.gateway, { ...to(FOREIGN), token: alice })
        t.match(hidden, /^HTTP\/1\.1 404 Not Found\r\n/, name)
        for (const target of [
          `${BASE}/nowhere`,
          `${BASE}/threads/${FOREIGN}/nothing`,
          `${BASE}/threads/${FOREIGN}/events/x`,
          '/elsewhere',
        ]) {
          t.equal(await bytes(gate.gateway, { ...to(FOREIGN), token: alice, target }), hidden, `${name} and ${target}`)
        }
      }
    }
    t.equal(upstream.beginnings(), before)
    for (const { name, to } of routes.filter(({ name }) => name !== 'delete')) {
      t.equal((await gate.gateway.ask({ ...to(OWN), token: alice })).status, 200, name)
    }
    t.equal(upstream.beginnings(), before + routes.length - 1)
  },
)
