/** What `explain` says of a request is what the gateway makes of it: the answer, and what reaches the upstream. */
import { test } from 'tap'
import { CODES } from '../../src/core/reasons.ts'
import type { Right } from '../../src/core/decide/sharing.ts'
import { openIdentity } from '../../src/snapshot/snapshot.ts'
import { prepare } from '../../src/snapshot/load.ts'
import { explain, type Explanation, type Question } from '../../src/tools/simulate/explain.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { openRaw } from '../../testing/support/raw.ts'
import { until } from '../../testing/support/until.ts'

const POLICY = `
version: 1
operators: [{ role: operator }]
rules:
  - { name: everyone, routes: [info, transcribe, threads/list], allow: [signed-in] }
  - { name: strict, routes: [agent/run], agents: [strict], allow: [signed-in], threads: [own, unknown], messages: { roles: [user], others: refuse, most: 1, size: 1KiB, media: [], schemes: [https] } }
  - { name: chat, routes: [agent/run, agent/connect, agent/suggest], allow: [signed-in], threads: [own, shared, unknown], limits: { body: 2KiB } }
  - { name: all, routes: [agent/run], allow: [operator], threads: [foreign], limits: { body: 8KiB } }
  - { name: own, routes: [agent/stop, threads/messages, threads/update], allow: [signed-in], threads: [own, shared], headers: [x-locale] }
  - { name: grants, routes: [threads/grants], allow: [signed-in], threads: [own] }
  - { name: hidden, routes: [threads/state], allow: [signed-in], threads: [own], refusal: 404 }
  - { name: wipe, routes: [threads/clear], allow: [operator] }
  - { name: finance, routes: [agent/run], deny: [signed-in], agents: [finance], unless: { permissions: { any: [finance] } } }
sharing: true
forwardedProps: [{ name: a2uiAction }]
tools: [show]
`

/** A request to both. */
interface Case {
  readonly method?: string
  readonly target: string
  /** By default alice. */
  readonly who?: 'alice' | 'olga' | 'nobody' | 'forged' | 'list'
  readonly body?: string
  /** Whose the thread is, for explain; the gateway has it in its store. */
  readonly owner?: string
  /** For what it was granted to alice, for explain; the gateway was told. */
  readonly granted?: Right
}

const BASE = '/api/copilotkit'
const RUN = {
  threadId: 'new-1',
  runId: 'r-1',
  messages: [],
  tools: [{ name: 'show' }, { name: 'other' }],
  state: {},
  context: [],
  forwardedProps: { config: 1, a2uiAction: 2 },
}
const USER = { id: 'm1', role: 'user', content: 'hello' }
const SYSTEM = { ...USER, role: 'system' }
const TUNNEL = { method: 'resource/request', params: { path: '/threads/alices/messages', httpMethod: 'GET' } }

const CASES: readonly Case[] = [
  // Targets: of test/core/target.test.ts, and how they end elsewhere.
  ...['/info#x', '\\info', '/threads;x=1', '//evil/api', '/./info', '/..', '/%2e%2e/info', '/a%2Fb', '/a%252Fb', '/%00', '/%zz', '/thread%73', '/threads/', '/threads?limit=1&limit=2', '/threads?x=%zz', '/threads/clear%2e', '/info/extra'].map(
    (end) => ({ target: `${BASE}${end}` }),
  ),
  { target: `http://evil${BASE}/info` },
  { target: '/' },
  { target: '/other/info' },
  { target: `${BASE}x/info` },
  { target: `${BASE}/info?limit=1&unknown=2` },
  { target: `${BASE}/info`, method: 'DELETE' },
  { target: `${BASE}/info`, method: 'HEAD' },
  { target: `${BASE}/info`, method: 'OPTIONS' },
  // Callers.
  { target: `${BASE}/info`, who: 'nobody' },
  { target: `${BASE}/info`, who: 'forged' },
  { target: `${BASE}/info`, who: 'list' },
  { target: `${BASE}/unknown`, who: 'nobody' },
  { target: `${BASE}/info` },
  { target: `${BASE}/threads/clear`, method: 'POST' },
  { target: `${BASE}/threads/clear`, method: 'POST', who: 'olga' },
  { target: `${BASE}/threads/clear`, method: 'POST', who: 'olga', body: '{"x":1}' },
  // Threads.
  { target: `${BASE}/threads/alices/messages`, owner: 'corp:alice' },
  { target: `${BASE}/threads/bobs/messages`, owner: 'corp:bob' },
  { target: `${BASE}/threads/nobodys/messages` },
  { target: `${BASE}/threads/bobs/state`, owner: 'corp:bob' },
  { target: `${BASE}/threads/clear/messages` },
  { target: `${BASE}/threads/alices`, method: 'PATCH', body: '{"name":"a","x":1,"agentId":"default"}', owner: 'corp:alice' },
  { target: `${BASE}/threads/alices`, method: 'PATCH', body: '', owner: 'corp:alice' },
  { target: `${BASE}/threads/alices/messages`, body: '{}', owner: 'corp:alice' },
  // Shared threads, and the gateway's own route.
  ...(['read', 'write'] as const).flatMap((granted): Case[] => {
    const shared = { owner: 'corp:bob', granted }
    const thread = `${BASE}/threads/bobs-${granted}`
    return [
      { ...shared, target: `${thread}/messages` },
      { ...shared, target: `${thread}/state` },
      { ...shared, target: thread, method: 'PATCH', body: '{"name":"a"}' },
      { ...shared, target: thread, method: 'PATCH', body: '{"name":"a","archived":null}' },
      { ...shared, target: thread, method: 'DELETE' },
      { ...shared, target: `${BASE}/agent/default/run`, method: 'POST', body: JSON.stringify({ ...RUN, threadId: `bobs-${granted}` }) },
      { ...shared, target: `${BASE}/agent/default/connect`, method: 'POST', body: JSON.stringify({ ...RUN, threadId: `bobs-${granted}` }) },
      { ...shared, target: `${BASE}/threadwarden/threads/bobs-${granted}/grants` },
    ]
  }),
  { target: `${BASE}/threadwarden/threads/alices/grants`, owner: 'corp:alice' },
  { target: `${BASE}/threadwarden/threads/alices/grants`, owner: 'corp:alice', method: 'PUT' },
  { target: `${BASE}/threadwarden/threads/nobodys/grants` },
  { target: BASE, method: 'POST', body: JSON.stringify({ method: 'threads/grants', params: { threadId: 'alices' } }), owner: 'corp:alice' },
  { target: `${BASE}/threads?limit=0` },
  { target: `${BASE}/threads?limit=5&agentId=default` },
  // Whoever may not is refused before the body is looked at.
  { target: `${BASE}/threads/clear`, method: 'POST', body: '{' },
  { target: BASE, method: 'POST', body: JSON.stringify({ method: 'resource/request', params: { path: '/threads/clear', httpMethod: 'POST' }, body: 7 }) },
  // Bodies.
  { target: `${BASE}/agent/default/run`, method: 'POST', body: JSON.stringify({ ...RUN, threadId: 'new-2' }) },
  { target: `${BASE}/agent/default/run`, method: 'POST', body: JSON.stringify({ ...RUN, threadId: 'bobs' }), owner: 'corp:bob' },
  { target: `${BASE}/agent/finance/run`, method: 'POST', body: JSON.stringify({ ...RUN, threadId: 'new-3' }) },
  { target: `${BASE}/agent/default/connect`, method: 'POST', body: JSON.stringify({ ...RUN, threadId: 'new-4' }) },
  ...['', '[]', '{', '{"threadId":"a","threadId":"b"}', '{"__proto__":{}}', '{"threadId":"messages"}', '{"threadId":"a/b"}', '{"threadId":"t","runId":"../x"}', `{"threadId":"t","messages":["${'x'.repeat(2048)}"]}`, '\ufeff{}', '{"threadId":1e999}'].map(
    (body) => ({ target: `${BASE}/agent/default/run`, method: 'POST', body }),
  ),
  // Numbers that are longer when they are written anew.
  {
    target: `${BASE}/agent/default/run`,
    method: 'POST',
    body: `{"threadId":"new-5","state":[${Array(300).fill('1e20').join()}]}`,
  },
  // Messages.
  ...[
    [SYSTEM, USER],
    [USER, { ...USER, role: 'assistant' }, 'text', { ...USER, secret: 1 }],
  ].map((messages, at) => ({
    target: `${BASE}/agent/default/run`,
    method: 'POST',
    body: JSON.stringify({ ...RUN, threadId: `new-messages-${at}`, messages }),
  })),
  ...[[SYSTEM], [USER], [USER, USER], [{ ...USER, content: 'x'.repeat(1100) }], [{ ...USER, content: [{ type: 'image' }] }]].map(
    (messages, at) => ({
      target: `${BASE}/agent/strict/run`,
      method: 'POST',
      body: JSON.stringify({ ...RUN, threadId: `new-strict-${at}`, messages }),
    }),
  ),
  // A rule of another thread allows more.
  {
    target: `${BASE}/agent/default/run`,
    method: 'POST',
    body: JSON.stringify({ ...RUN, threadId: 'new-6', messages: ['x'.repeat(3000)] }),
    who: 'olga',
  },
  // Envelopes.
  { target: BASE, method: 'POST', body: JSON.stringify(TUNNEL), owner: 'corp:alice' },
  { target: BASE, method: 'POST', body: JSON.stringify({ ...TUNNEL, params: { ...TUNNEL.params, path: '/threads/../threads/bobs/messages' } }) },
  { target: BASE, method: 'POST', body: JSON.stringify({ method: 'agent/run', params: { agentId: 'default' }, body: { ...RUN, threadId: 'bobs' } }), owner: 'corp:bob' },
  { target: BASE, method: 'POST', body: JSON.stringify({ method: 'agent/run', params: { agentId: 'default' }, body: '{}' }) },
  { target: BASE, method: 'POST', body: JSON.stringify({ method: 'info', strange: 1 }) },
  { target: BASE, method: 'POST', body: JSON.stringify({ method: 'threads/list' }) },
  { target: BASE, method: 'POST', body: '' },
  { target: `${BASE}?limit=1`, method: 'POST', body: JSON.stringify(TUNNEL) },
  { target: BASE, method: 'PUT', body: JSON.stringify(TUNNEL) },
  { target: BASE },
] // oxfmt-ignore

const CONFIG = {
  upstream: { headers: { 'X-Service-Token': 'hunter2-the-service' } },
  forwardHeaders: ['x-locale', 'x-tenant'],
  identity: { headers: { id: 'x-user-id', role: 'x-user-role' } },
}

/** The headers that the caller of both sends besides. */
const SENT = ['accept', 'x-locale', 'x-tenant'] as const

async function ask(scene: GatedUpstream, { method = 'GET', target, who = 'alice', body = '' }: Case) {
  const token = tokenOf(scene, who)
  const head = [
    `${method} ${target} HTTP/1.1`,
    'host: gateway',
    'connection: close',
    ...SENT.map((name) => `${name}: as-sent`),
    ...(token === null ? [] : [`authorization: Bearer ${token}`]),
    ...(body === '' ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]),
  ]
  const raw = await openRaw(scene.gateway.url)
  raw.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  const text = await raw.ended()
  const code = /"code":"([a-z-]+)"/.exec(text)?.[1] ?? null
  return { status: Number(text.split(' ')[1]), code }
}

function tokenOf({ alice, olga }: GatedUpstream, who: NonNullable<Case['who']>): string | null {
  if (who === 'nobody') return null
  if (who === 'list') return 'one,two'
  return who === 'olga' ? olga : who === 'forged' ? `${alice.slice(0, -8)}AAAAAAAA` : alice
}

async function explained(
  scene: GatedUpstream,
  { method = 'GET', target, who = 'alice', body = '', owner, granted }: Case,
): Promise<Explanation> {
  const prepared = prepare(scene.gateway.file, {})
  if (!prepared.ok) throw new Error(JSON.stringify(prepared.faults))
  const { config, policy } = prepared.value
  const identity = openIdentity(config.identity, prepared.value.sources, Date.now)
  const token = tokenOf(scene, who)
  const question: Question = {
    method,
    target,
    presented: token === null ? { kind: 'nothing' } : { kind: 'token', token },
    body: Buffer.from(body),
    record: owner === undefined ? null : { owner, deleted: false, ...(granted === undefined ? {} : { granted }) },
    upstreamHistory: 'none',
  }
  return explain(question, { config, policy, identity, clock: Date.now })
}

void test('explain and the gateway agree', async (t) => {
  const scene = await gated(
    t,
    (request, response) => {
      const list = request.target.startsWith(`${BASE}/threads?`) || request.target === `${BASE}/threads`
      response.writeHead(200, { 'content-type': 'application/json' }).end(list ? '{"threads":[]}' : '{"agents":{}}')
    },
    { config: CONFIG, policy: POLICY },
  )
  for (const [threadId, token] of [
    ['alices', scene.alice],
    ['bobs', scene.bob],
    ['bobs-read', scene.bob],
    ['bobs-write', scene.bob],
  ] as const) {
    const run = await fetch(`${scene.base}/agent/default/run`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...RUN, threadId }),
    })
    t.equal(run.status, 200)
  }
  for (const right of ['read', 'write']) {
    const grant = await fetch(`${scene.base}/threadwarden/threads/bobs-${right}/grants`, {
      method: 'POST',
      headers: { authorization: `Bearer ${scene.bob}`, 'content-type': 'application/json' },
      body: JSON.stringify({ user: 'corp:alice', right }),
    })
    t.equal(grant.status, 201)
  }
  let compared = 0
  for (const one of CASES) {
    const before = scene.upstream.requests.length
    const answer = await ask(scene, one)
    const explanation = await explained(scene, one)
    const { outcome, sent } = explanation
    const label = JSON.stringify(one).slice(0, 160)
    if (outcome === 'key-set') throw new Error('there are no assertions here')
    if (outcome.outcome === 'refused') {
      // What is no HTTP/1.1 request at all the parser refuses, before anybody reads a target; HEAD has no body to tell a code.
      const code = one.method === 'HEAD' ? null : outcome.code
      t.same(answer, { status: CODES[outcome.code].status, code }, label)
      t.equal(scene.upstream.requests.length, before, `${label}: nothing is sent`)
      continue
    }
    t.same(answer, { status: 200, code: null }, label)
    if (sent === null) {
      t.ok(outcome.answerEmpty || outcome.descriptor.route.own, label)
      t.equal(scene.upstream.requests.length, before, `${label}: nothing is sent`)
      continue
    }
    await until(() => scene.upstream.requests.length > before)
    const arrived = scene.upstream.requests[before]!
    compared += 1
    t.same(
      { method: sent.method, target: sent.target, body: sent.body ?? undefined },
      { method: arrived.method, target: arrived.target, body: arrived.json },
      label,
    )
    const told = [
      ...sent.headers.map(({ name }) => name),
      ...sent.passing.filter((name) => (SENT as readonly string[]).includes(name)),
    ]
    const own = ['host', 'connection', 'content-length', 'transfer-encoding']
    t.same(told.sort(), [...arrived.headers.keys()].filter((name) => !own.includes(name)).sort(), `${label}: the headers`)
    for (const { name, value } of sent.headers) {
      if (value !== null && name !== 'x-request-id') t.same(arrived.headers.get(name), [value], `${label}: ${name}`)
    }
    t.notMatch(JSON.stringify(sent), /hunter2|eyJ/, 'no secret')
  }
  t.ok(compared >= 9, `${compared} requests were sent`)
})
