/** The admin API of a running gateway: what was decided, what is open, what applies, and why. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { call, codeOf, runInput, type Call, type Reply } from '../../testing/support/client.ts'
import { requireDocumented } from '../../testing/support/admin-document.ts'
import { gated, type GatedOptions, type GatedUpstream } from '../../testing/support/gated.ts'
import { until } from '../../testing/support/until.ts'
import type { Answering } from '../../testing/support/upstream.ts'

const CREDENTIAL = 'c'.repeat(40)

/** A stream that has begun and does not end by itself. */
const begun: Answering = (request, response) => {
  if (!request.target.includes('/run')) return void response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')
}

interface Inspected extends GatedUpstream {
  readonly ask: (path: string, options?: Call) => Promise<Reply & { readonly json: never }>
}

async function inspected(t: Test, options: GatedOptions = {}): Promise<Inspected> {
  const gateway = await gated(t, begun, { ...options, config: { admin: { port: 0, credential: CREDENTIAL }, ...options.config } })
  return {
    ...gateway,
    async ask(path, asked = {}) {
      const reply = await call(`${gateway.gateway.adminUrl}${path}`, { token: CREDENTIAL, ...asked })
      requireDocumented(asked.method ?? (asked.body === undefined ? 'GET' : 'POST'), path, reply)
      return { ...reply, json: reply.json as never }
    },
  }
}

interface Line {
  readonly requestId: string
  readonly reason: string
  readonly thread: string | null
  readonly rule: { readonly name: string; readonly line: number | null } | null
}

async function decisions({ ask }: Inspected, query = ''): Promise<readonly Line[]> {
  return ((await ask(`/decisions${query}`)).json as { readonly decisions: readonly Line[] }).decisions
}

/** Alice runs t1; Bob asks for it, and someone without a token. */
async function used(one: Inspected): Promise<{ readonly bobs: string; readonly stream: Promise<string> }> {
  const stream = call(`${one.base}/agent/default/run`, { token: one.alice, body: runInput('t1') }).then(({ text }) => text)
  await until(async () => (await one.ask('/streams')).text.includes('"t1"'))
  const bobs = await call(`${one.base}/threads/t1/messages`, { token: one.bob })
  await call(`${one.base}/info`)
  return { bobs: bobs.headers.get('x-request-id') ?? '', stream }
}

void test('the last decisions can be filtered, and have the rule that decided', async (t) => {
  const one = await inspected(t)
  const { bobs, stream } = await used(one)
  const all = await decisions(one)
  t.same(
    all.map(({ reason, thread }) => [reason, thread]),
    [
      ['credential-missing', null],
      ['thread-foreign', 't1'],
      ['permitted', 't1'],
    ],
    'the latest first',
  )
  t.equal(typeof all[2]?.rule?.line, 'number')
  for (const [query, reasons] of [
    ['?reason=refused', ['credential-missing', 'thread-foreign']],
    ['?reason=thread-foreign', ['thread-foreign']],
    ['?reason=permitted', ['permitted']],
    ['?user=corp:bob', ['thread-foreign']],
    ['?thread=t1&user=corp:alice', ['permitted']],
    ['?route=agent%2Frun', ['permitted']],
    ['?limit=1', ['credential-missing']],
    ['?thread=t', []],
  ] as const) {
    t.same(
      (await decisions(one, query)).map(({ reason }) => reason),
      reasons,
      query,
    )
  }
  for (const query of ['?limit=0', '?limit=1001x', '?user=', '?thread=']) {
    t.equal((await one.ask(`/decisions${query}`)).status, 400, query)
  }
  for (const query of ['?', '?who=bob', '?limit=1&limit=2', '?limit']) t.equal((await one.ask(`/decisions${query}`)).status, 404)
  t.equal((await decisions(one, '?thread=t1')).find(({ reason }) => reason === 'thread-foreign')?.requestId, bobs)
  t.match((await one.ask('/decisions/minutes')).json, {
    minutes: [{ permitted: 1, refused: { 'thread-foreign': 1, 'credential-missing': 1 } }],
  })
  t.notOk((await one.ask('/decisions')).text.includes(one.alice), 'no token is kept')
  await one.ask(`/streams/${(await streams(one))[0]?.requestId}`, { method: 'DELETE' })
  await stream
})

interface Stream {
  readonly requestId: string
  readonly user: string
  readonly route: string
}

async function streams({ ask }: Inspected): Promise<readonly Stream[]> {
  return ((await ask('/streams')).json as { readonly streams: readonly Stream[] }).streams
}

void test('an operator ends one stream, whose client reads why; the others stay', async (t) => {
  const one = await inspected(t)
  const { stream } = await used(one)
  const second = call(`${one.base}/agent/default/run`, { token: one.bob, body: runInput('t2') })
  await until(async () => (await streams(one)).length === 2)
  const [alices, bobs] = await streams(one)
  t.match(alices, { user: 'corp:alice', route: 'agent/run', agent: 'default', thread: 't1', expiresAt: /^\d{4}-/ })
  const ended = await one.ask(`/streams/${alices?.requestId}`, { method: 'DELETE' })
  t.equal(ended.status, 204)
  t.match(
    await stream,
    /data: \{"type":"RUN_ERROR","message":"An operator has ended this answer\.","code":"ended-by-operator"\}\n\n$/,
  )
  t.same(
    (await streams(one)).map(({ requestId }) => requestId),
    [bobs?.requestId],
  )
  t.equal((await one.ask(`/streams/${alices?.requestId}`, { method: 'DELETE' })).status, 404, 'it is over')
  t.match(
    one.gateway.lines.filter(({ action }) => action === 'end-stream'),
    [
      { level: 'info', target: `stream:${alices?.requestId}`, outcome: 'done' },
      { level: 'warn', outcome: 'not-found' },
    ],
  )
  t.match(
    one.gateway.lines.find(({ requestId, msg }) => requestId === alices?.requestId && msg === 'request'),
    { ended: 'ended-by-operator' },
  )
  await one.ask(`/streams/${bobs?.requestId}`, { method: 'DELETE' })
  await second
})

void test('an answer that is no stream is not in the list, and cannot be ended', async (t) => {
  const one = await inspected(t)
  const id = (await call(`${one.base}/info`, { token: one.alice })).headers.get('x-request-id') ?? ''
  t.same(await streams(one), [])
  t.equal((await one.ask(`/streams/${id}`, { method: 'DELETE' })).status, 404)
})

void test('the status says what applies, and what became of the last reload', async (t) => {
  const one = await inspected(t)
  t.match((await one.ask('/status')).json, {
    workers: 1,
    ready: true,
    pending: {},
    configuration: { generation: 1, enforcement: 'enforce', policy: { hash: /^[0-9a-f]{64}$/ } },
    lastReload: null,
    issuers: [{ key: 'corp', state: 'usable', fetchedAt: null }],
    upstreams: [{ key: '', publicPath: '/api/copilotkit', transport: 'multi-route' }],
  })
  await one.ask('/reload', { method: 'POST' })
  t.match((await one.ask('/status')).json, { lastReload: { cause: 'admin', outcome: 'unchanged', faults: [] } })
})

void test('a store that is gone is pending, as in /readyz', async (t) => {
  const one = await inspected(t)
  for (const end of ['', '-wal', '-shm']) rmSync(join(one.gateway.folder, `ownership.db${end}`), { force: true })
  t.match((await one.ask('/status')).json, { ready: false, pending: { store: /its file is missing/ } })
})

void test('the active configuration is shown as it was written, without secrets', async (t) => {
  const one = await inspected(t, {
    config: { upstream: { headers: { 'x-key': 'a-secret-of-the-upstream' } }, limits: { body: '3MiB' } },
  })
  const { text, json } = await one.ask('/configuration')
  t.match(json, {
    generation: 1,
    written: { admin: { credential: null, port: undefined }, upstream: { headers: ['x-key'] }, limits: { body: '3MiB' } },
  })
  for (const secret of [CREDENTIAL, 'a-secret-of-the-upstream']) t.notOk(text.includes(secret))
})

void test('the active policy is shown by route and relation', async (t) => {
  const one = await inspected(t)
  const { routes } = (await one.ask('/policy')).json as {
    readonly routes: readonly { readonly route: string; readonly closed: boolean; readonly access: readonly object[] }[]
  }
  t.match(routes.find(({ route }) => route === 'agent/run')?.access, [
    { effect: 'allow', threads: ['own', 'shared', 'unknown'], rule: { line: Number } },
  ])
  t.ok(routes.some(({ closed }) => closed))
})

interface Explained {
  readonly then: { readonly reason: string } | null
  readonly same: boolean | null
  readonly now: { readonly outcome: string; readonly reason: string; readonly rule: { readonly name: string } | null } | null
  readonly rules: readonly { readonly decides: boolean; readonly verdict: string }[]
  readonly facts: { readonly relation: string } | null
}

void test('a recent request, a line of the audit and claims are explained by the active policy', async (t) => {
  const one = await inspected(t)
  const { bobs, stream } = await used(one)
  const explain = async (body: object) => one.ask('/explain', { body })
  const byId = (await explain({ requestId: bobs })).json as Explained
  t.match(byId, { then: { outcome: 'refused', reason: 'thread-foreign' }, same: true, now: { reason: 'thread-foreign' } })
  t.equal(byId.facts?.relation, 'foreign')
  t.ok(byId.rules.some(({ verdict }) => verdict === 'thread'))
  const line = (await decisions(one)).find(({ requestId }) => requestId === bobs)
  t.same((await explain({ line })).json, byId)
  const target = '/api/copilotkit/threads/t1/messages'
  const claims = { sub: 'alice' }
  t.match((await explain({ method: 'GET', target, claims })).json, {
    then: null,
    now: { outcome: 'permitted' },
    facts: { relation: 'own' },
    upstream: { target: '/api/copilotkit/threads/t1/messages' },
  })
  t.match((await explain({ method: 'GET', target, claims: { ...claims, sub: 'bob' } })).json, {
    now: { outcome: 'refused', reason: 'thread-foreign', status: 403 },
    facts: { relation: 'foreign' },
  })
  t.match((await explain({ method: 'GET', target })).json, {
    now: { reason: 'credential-missing', status: 401 },
    principal: null,
  })
  const listeners = process.listenerCount('exit')
  for (let at = 0; at < 20; at += 1) await explain({ method: 'GET', target, claims })
  t.equal(process.listenerCount('exit'), listeners, 'a question leaves nothing behind')
  const unknown = await explain({ requestId: 'r-unknown' })
  t.same([unknown.status, codeOf(unknown)], [404, 'not-found'])
  for (const wrong of [
    {},
    { requestId: bobs, line },
    { method: 'GET' },
    { target },
    { line: { audit: 2 } },
    { line: { audit: 1 } },
    { method: 'get', target },
    { method: 'GET', target, claims, issuer: 'other' },
    { method: 'GET', target, claims: [] },
    { requestId: bobs, more: 1 },
  ]) {
    t.equal((await explain(wrong)).status, 400, JSON.stringify(wrong).slice(0, 60))
  }
  await one.ask(`/streams/${(await streams(one))[0]?.requestId}`, { method: 'DELETE' })
  await stream
})

void test('threads are found by owner, page by page, and get another owner or none', async (t) => {
  const one = await inspected(t)
  const { stream } = await used(one)
  await one.ask(`/streams/${(await streams(one))[0]?.requestId}`, { method: 'DELETE' })
  await stream
  const found = async (query: string) =>
    (await one.ask(`/threads${query}`)).json as { readonly threads: { readonly thread: string }[] }
  t.match(await found('?user=corp:alice'), { threads: [{ thread: 't1', owner: 'corp:alice', state: 'live' }], next: null })
  t.same((await found('?user=corp:bob')).threads, [])
  t.same((await found('?scope=other')).threads, [])
  t.equal((await one.ask('/threads?after=t1')).status, 400)
  t.equal((await one.ask('/threads?deleted=yes')).status, 400)

  const messages = async (token: string) => (await call(`${one.base}/threads/t1/messages`, { token })).status
  const assign = (body: object) => one.ask('/threads/t1/owner', { body })
  t.equal((await assign({ user: 'corp:bob', expected: 'corp:carol' })).status, 409)
  t.equal(await messages(one.bob), 403)
  t.same((await assign({ user: 'corp:bob', expected: 'corp:alice' })).json, { before: 'corp:alice' })
  t.same([await messages(one.alice), await messages(one.bob)], [403, 200])
  t.same((await assign({ user: 'corp:bob' })).json, { before: 'corp:bob' })
  for (const body of [{}, { user: 'bob' }, { user: 'other:bob' }, { user: 'corp:bob', more: 1 }]) {
    t.equal((await assign(body)).status, 400, JSON.stringify(body))
  }
  t.equal((await one.ask('/threads/t1/owner', { method: 'DELETE' })).status, 204)
  t.same([await messages(one.alice), await messages(one.bob)], [403, 403])
  t.equal((await one.ask('/threads/t9/owner', { method: 'DELETE' })).status, 404)
  t.match(
    one.gateway.lines
      .filter(({ msg, action }) => msg === 'admin' && (action === 'assign' || action === 'withhold'))
      .map(({ outcome, target }) => [outcome, target]),
    [
      ['refused', 'user:corp:bob'],
      ['done', 'user:corp:bob'],
      ['unchanged', 'user:corp:bob'],
    ],
  )
})

void test('a list of threads continues where the page before ended', async (t) => {
  const one = await inspected(t)
  for (let at = 0; at < 203; at += 1) {
    await one.ask(`/threads/t-${String(at).padStart(3, '0')}/owner`, { body: { user: 'corp:alice' } })
  }
  const seen: string[] = []
  for (let next: string | null = ''; next !== null;) {
    const page: { readonly threads: { readonly thread: string }[]; readonly next: string | null } = (
      await one.ask(`/threads${next === '' ? '' : `?after=${next}`}`)
    ).json
    seen.push(...page.threads.map(({ thread }) => thread))
    next = page.next
  }
  t.same(
    seen,
    Array.from({ length: 203 }, (_, at) => `t-${String(at).padStart(3, '0')}`),
  )
})
