/** Whose a thread of a LangGraph server is: from its creation, run or copy on, whatever the server answers. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import type { AuditLine } from '../../src/audit/line.ts'
import { codeOf, type Reply } from '../../testing/support/client.ts'
import type { GatedOptions } from '../../testing/support/gated.ts'
import { edited } from '../../testing/support/policies.ts'
import { openRaw, requestBytes } from '../../testing/support/raw.ts'
import { owners, rows } from '../../testing/support/rows.ts'
import { OPERATOR, OWNERS_SHARE } from '../../testing/support/sharing.ts'
import { until } from '../../testing/support/until.ts'
import { json, type Answering } from '../../testing/support/upstream.ts'
import { obliging, recorded, targets } from './recorded.ts'

const ID = 'a1111111-1111-4111-8111-111111111111'
const COPY = 'c3333333-3333-7333-8333-333333333333'
const RUN = 'd4444444-4444-7444-8444-444444444444'
const NOTES = { assistant_id: 'notes' }
const verify: GatedOptions = { config: { ownership: { unknownThread: 'verify' } } }

/** The server has no thread yet: it answers questions about threads with 404, and everything else as it is asked. */
const empty: Answering = (request, response) =>
  request.method === 'GET' ? json({ detail: 'not found' }, 404)(request, response) : obliging(request, response)

void test('claim: a creation and a run own an unowned thread, and other routes do not open it', async (t) => {
  const { ask, alice, bob, server, gateway, reason } = await recorded(t)
  for (const [method, path] of [
    ['GET', ''],
    ['GET', '/state'],
    ['GET', '/history'],
    ['GET', '/runs'],
    ['DELETE', ''],
    ['POST', '/copy'],
  ] as const) {
    t.equal((await ask(alice, `/threads/${ID}${path}`, { method })).status, 403)
    t.equal(reason(), 'thread-unknown')
  }
  t.same([server.requests, owners(gateway.folder)], [[], []])
  t.equal((await ask(alice, `/threads/${ID}/runs`, { body: NOTES })).status, 200)
  t.same(owners(gateway.folder), [`${ID}=corp:alice`])
  t.equal((await ask(bob, '/threads', { body: {} })).status, 200)
  const { thread_id } = server.requests.at(-1)?.json as { thread_id: string }
  t.match(server.requests.at(-1)?.json, { if_exists: 'raise' }, 'the server must not give a thread that it has')
  t.ok(owners(gateway.folder).includes(`${thread_id}=corp:bob`), 'the gateway named it, and the row came first')
})

void test('verify: the server is asked about an id that a caller names, and not about one that the gateway names', async (t) => {
  const { ask, alice, server, gateway, reason } = await recorded(t, obliging, verify)
  for (const [path, body] of [
    [`/threads/${ID}/runs`, NOTES],
    ['/threads', { thread_id: ID }],
    ['/threads', { thread_id: ID, if_exists: 'do_nothing' }],
  ] as const) {
    t.equal((await ask(alice, path, { body })).status, 403)
    t.equal(reason(), 'thread-has-history')
  }
  t.same(new Set(targets(server.requests)), new Set([`GET /threads/${ID}`]))
  t.same(owners(gateway.folder), [])
  const before = server.requests.length
  t.equal((await ask(alice, '/threads', { body: {} })).status, 200)
  t.same(targets(server.requests.slice(before)), ['POST /threads'])
  server.answer(empty)
  t.equal((await ask(alice, '/threads', { body: { thread_id: ID, if_exists: 'do_nothing' } })).status, 200)
  t.match(server.requests.at(-1)?.json, { if_exists: 'raise' }, 'it may have come there since the question')
  t.ok(owners(gateway.folder).includes(`${ID}=corp:alice`))
  for (const status of [401, 403, 500]) {
    server.answer(json({}, status))
    const refused = await ask(alice, '/threads', { body: { thread_id: COPY } })
    t.ok(refused.status >= 400, 'an answer that tells nothing opens nothing')
  }
  t.notOk(owners(gateway.folder).some((row) => row.startsWith(COPY)))
})

void test('verify: a caller who leaves before the server refuses the id takes no thread that it has', async (t) => {
  const { ask, alice, server, gateway } = await recorded(t, obliging, verify)
  server.answer((request, response) => {
    // A creation is not answered, so that the caller may leave it.
    if (request.method === 'GET') return obliging(request, response)
  })
  const connection = await openRaw(gateway.url)
  connection.write(requestBytes({ target: '/graphs/threads', token: alice, body: JSON.stringify({ thread_id: ID }) }))
  await server.arrived(1)
  connection.destroy()
  await until(() => gateway.lines.some(({ msg }) => msg === 'request'))
  server.answer(obliging)
  t.equal((await ask(alice, '/threads', { body: { thread_id: ID, if_exists: 'do_nothing' } })).status, 403)
  t.equal((await ask(alice, `/threads/${ID}/runs`, { body: NOTES })).status, 403)
  t.equal((await ask(alice, `/threads/${ID}`)).status, 403)
  t.notOk(targets(server.requests).includes('POST /threads'))
})

void test('deny: no thread begins, by whatever route, and nothing reaches the server', async (t) => {
  const { ask, alice, server, gateway } = await recorded(t, obliging, { config: { ownership: { unknownThread: 'deny' } } })
  for (const [path, body] of [
    [`/threads/${ID}/runs`, NOTES],
    [`/threads/${ID}/runs/stream`, NOTES],
    ['/threads', { thread_id: ID }],
    ['/threads', {}],
  ] as const) {
    t.equal((await ask(alice, path, { body })).status, 403)
  }
  t.same([server.requests, owners(gateway.folder)], [[], []])
})

void test('nothing is kept of what the server certainly did not make; everything else stays the caller’s, unconfirmed', async (t) => {
  const { ask, alice, bob, server, gateway } = await recorded(t)
  const begin: readonly (readonly [string, () => Promise<Reply>])[] = [
    ['a creation', () => ask(alice, '/threads', { body: { thread_id: ID } })],
    ['a run', () => ask(alice, `/threads/${ID}/runs/stream`, { body: NOTES })],
  ]
  for (const [what, request] of begin) {
    for (const status of [400, 404, 409, 422]) {
      server.answer(json({}, status))
      t.equal((await request()).status, status)
      t.same(owners(gateway.folder), [], `${what}: ${status}`)
    }
  }
  for (const [what, request] of begin) {
    for (const [how, answering] of [
      ['500', json({}, 500)],
      ['503', json({}, 503)],
      ['a reset', (_request, response) => void response.destroy()],
      ['a page', (_request, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')],
    ] as readonly (readonly [string, Answering])[]) {
      server.answer(answering)
      await request()
      t.match(rows(gateway.folder), [{ thread_id: ID, user_id: 'corp:alice', provisional: 1 }], `${what}: ${how}`)
      server.answer(obliging)
      t.equal((await ask(bob, `/threads/${ID}/runs`, { body: NOTES })).status, 403)
      t.equal((await ask(alice, `/threads/${ID}`)).status, 403, 'the server may have another thread of that id')
      server.answer(json({}, 409))
      await ask(alice, `/threads/${ID}/runs`, { body: NOTES })
    }
  }
})

void test('a thread whose steps the server refuses is there, and its creator’s', async (t) => {
  const policy = edited('durability, if_not_exists', 'supersteps, durability, if_not_exists')
  const { ask, alice, server, gateway } = await recorded(t, json({ detail: 'no graph' }, 400), { policy })
  const supersteps = [{ updates: [{ as_node: 'answer', values: {} }] }]
  t.equal((await ask(alice, '/threads', { body: { thread_id: ID, supersteps } })).status, 400)
  t.same(owners(gateway.folder), [`${ID}=corp:alice`])
  server.answer(json({}, 409))
  t.equal((await ask(alice, '/threads', { body: { thread_id: COPY, supersteps } })).status, 409)
  t.notOk(owners(gateway.folder).some((row) => row.startsWith(COPY)))
})

void test('a copy is the caller’s before its id is told, and nobody’s where it does not come', async (t) => {
  const { ask, create, alice, bob, server, gateway } = await recorded(t)
  await create(alice, ID)
  const copy = (token = alice): Promise<Reply> => ask(token, `/threads/${ID}/copy`, { body: {} })
  for (const [how, answering, status] of [
    ['an error', json({}, 409), 409],
    ['no id', json({}), 502],
    ['another form of id', json({ thread_id: COPY.toUpperCase() }), 502],
    ['its own id', json({ thread_id: ID }), 502],
    ['a list', json([{ thread_id: COPY }]), 502],
    ['another status', json({ thread_id: COPY }, 201), 502],
    ['no JSON', (_request, response) => void response.writeHead(200, { 'content-type': 'text/plain' }).end(COPY), 502],
    [
      'half an answer',
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' })
        response.write(`{"thread_id":"${COPY}"`, () => response.destroy())
      },
      502,
    ],
  ] as readonly (readonly [string, Answering, number])[]) {
    server.answer(answering)
    const reply = await copy()
    t.equal(reply.status, status, how)
    t.notMatch(reply.text, COPY.slice(1, 20), `${how}: no id is told`)
    t.same(owners(gateway.folder), [`${ID}=corp:alice`], how)
  }
  server.answer(json({ thread_id: COPY, metadata: { title: 'mine' } }))
  const reply = await copy()
  t.same([reply.status, reply.json], [200, { thread_id: COPY, metadata: { title: 'mine' } }])
  t.match(
    rows(gateway.folder).find(({ thread_id }) => thread_id === COPY),
    { user_id: 'corp:alice', provisional: 0 },
  )
  server.answer(obliging)
  t.equal((await ask(alice, `/threads/${COPY}`)).status, 200)
  t.equal((await ask(bob, `/threads/${COPY}`)).status, 403)
  server.answer(json({ thread_id: COPY }))
  t.equal((await copy()).status, 502, 'an id that is in use is no copy')
  server.answer(obliging)
  const theirs = await create(bob)
  server.answer(json({ thread_id: theirs }))
  const foreign = await copy()
  t.equal(foreign.status, 502, 'nor is an id that is in use by another user')
  t.notMatch(foreign.text, theirs)
})

void test('a deletion leaves a tombstone: the thread stays closed to others, and its owner may begin it again', async (t) => {
  const { ask, create, alice, bob, server, gateway } = await recorded(t)
  await create(alice, ID)
  server.answer((_request, response) => void response.writeHead(204).end())
  t.equal((await ask(alice, `/threads/${ID}`, { method: 'DELETE' })).status, 204)
  t.match(rows(gateway.folder), [{ thread_id: ID, user_id: 'corp:alice', deleted_at: Number }])
  server.answer(obliging)
  for (const [path, body] of [
    [`/threads/${ID}/runs`, NOTES],
    ['/threads', { thread_id: ID }],
  ] as const) {
    t.equal((await ask(bob, path, { body })).status, 403)
  }
  t.equal((await ask(alice, `/threads/${ID}`)).status, 403)
  t.same((await ask(alice, '/threads/search', { body: {} })).json, [])
  t.equal((await ask(alice, '/threads', { body: { thread_id: ID } })).status, 200)
  t.match(rows(gateway.folder), [{ thread_id: ID, user_id: 'corp:alice', deleted_at: null }])
})

void test('a run in the background may write after a deletion: the tombstone is not forgotten', async (t) => {
  const { ask, create, alice, server, gateway } = await recorded(t)
  const other = crypto.randomUUID()
  await create(alice, ID)
  await create(alice, other)
  t.equal((await ask(alice, `/threads/${ID}/runs`, { body: NOTES })).status, 200)
  server.answer((_request, response) => void response.writeHead(204).end())
  for (const threadId of [ID, other]) await ask(alice, `/threads/${threadId}`, { method: 'DELETE' })
  const { default: Database } = await import('better-sqlite3')
  const database = new Database(join(gateway.folder, 'ownership.db'), { readonly: true })
  t.teardown(() => database.close())
  const told = database.prepare<[], { thread_id: string; upstream_deleted: number }>(
    'SELECT thread_id, upstream_deleted FROM threads',
  )
  t.same(
    new Map(told.all().map((row) => [row.thread_id, row.upstream_deleted])),
    new Map([
      [ID, 0],
      [other, 1],
    ]),
  )
})

void test('observe: everything passes as the server has it, and the log says what would be refused', async (t) => {
  const { ask, alice, bob, server, gateway } = await recorded(t, obliging, { config: { enforcement: 'observe' } })
  t.equal((await ask(alice, '/threads', { body: { thread_id: ID } })).status, 200)
  t.equal((await ask(bob, `/threads/${ID}`)).status, 200)
  const metrics = await fetch(`${gateway.healthUrl}/metrics`).then((answer) => answer.text())
  t.match(metrics, /_would_refuse_total\{[^}]*route="langgraph\/threads\/read"[^}]*reason="thread-foreign"[^}]*\} 1/)
  server.answer(json([{ thread_id: ID }, { thread_id: COPY }]))
  t.match((await ask(bob, '/threads/search', { body: {} })).json, [{ thread_id: ID }, { thread_id: COPY }])
  t.equal((server.requests.at(-1)?.json as { ids?: unknown }).ids, undefined)
  t.match((await ask(alice, '/threads/search', { body: {} })).json, [{ thread_id: ID }, { thread_id: COPY }])
  const wouldHide = () =>
    gateway.lines.filter(({ route }) => route === 'langgraph/threads/search').map((line) => line['wouldHide'])
  await until(() => wouldHide().length === 2)
  t.same(wouldHide(), [2, 1], 'both threads from Bob, and from Alice the one that she did not begin')
  server.answer(json({ thread_id: COPY }))
  t.match((await ask(alice, `/threads/${ID}/copy`, { body: {} })).json, { thread_id: COPY })
  t.same(owners(gateway.folder), [], 'no user becomes an owner')
})

void test('a stream ends with an event that a client of LangGraph knows, once its caller is revoked or signed out', async (t) => {
  const { create, alice, server, gateway, signer } = await recorded(t, obliging, {
    config: { admin: { port: 0, credential: OPERATOR } },
  })
  await create(alice, ID)
  server.answer((request, response) => {
    if (request.target.endsWith('/stream')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('event: metadata\ndata: {}\n\n')
    } else void obliging(request, response)
  })
  const open = async (token: string, method: string, path: string, body?: object) => {
    const connection = await openRaw(gateway.url)
    const text = body === undefined ? {} : { body: JSON.stringify(body) }
    connection.write(requestBytes({ method, target: `/graphs/threads/${ID}/${path}`, token, ...text }))
    await connection.until('event: metadata')
    return connection
  }
  const streams = [await open(alice, 'POST', 'runs/stream', NOTES), await open(alice, 'GET', `runs/${RUN}/stream`)]
  const revoked = await gateway.call(`${gateway.adminUrl}/revocations`, {
    token: OPERATOR,
    transport: 'multi-route',
    body: { user: 'corp:alice' },
  })
  t.equal(revoked.status < 300, true, revoked.text)
  for (const stream of streams) t.match(await stream.ended(), /event: error\r?\ndata: \{"error":"credential-invalid",/)
  t.equal(signer.signed.length > 0, true)
})

void test('runs, new threads and open streams count against the limits, copies among the new threads', async (t) => {
  const { ask, create, alice, server, reason } = await recorded(t, obliging, {
    config: { limits: { newThreads: '1/h', runs: '1/h', streams: 1 } },
  })
  await create(alice, ID)
  server.answer(json({ thread_id: COPY }))
  t.equal((await ask(alice, `/threads/${ID}/copy`, { body: {} })).status, 200)
  server.answer(obliging)
  t.equal((await ask(alice, `/threads/${ID}/copy`, { body: {} })).status, 429, 'twice the rate may come at once')
  t.equal(reason(), 'new-threads-limited')
  t.equal((await ask(alice, '/threads', { body: {} })).status, 429)
  for (const status of [200, 200, 429]) t.equal((await ask(alice, `/threads/${ID}/runs`, { body: NOTES })).status, status)
  t.equal(reason(), 'runs-limited')
})

void test('open runs, joins and waits take the places of streams', async (t) => {
  const { ask, create, alice, server, gateway, reason } = await recorded(t, obliging, { config: { limits: { streams: 1 } } })
  await create(alice, ID)
  server.answer((request, response) => {
    if (/\/(?:stream|join|wait)$/.test(request.target)) response.writeHead(200, { 'content-type': 'application/json' }).write(' ')
    else void obliging(request, response)
  })
  for (const [method, path] of [
    ['POST', 'runs/stream'],
    ['POST', 'runs/wait'],
    ['GET', `runs/${RUN}/join`],
    ['GET', `runs/${RUN}/stream`],
  ] as const) {
    const count = server.requests.length
    const connection = await openRaw(gateway.url)
    const text = method === 'GET' ? {} : { body: JSON.stringify(NOTES) }
    connection.write(requestBytes({ method, target: `/graphs/threads/${ID}/${path}`, token: alice, ...text }))
    await connection.until('HTTP/1.1 200')
    t.ok(server.requests.length > count)
    t.equal((await ask(alice, `/threads/${ID}/runs/${RUN}/join`)).status, 429, path)
    t.equal(reason(), 'streams-limited')
    connection.destroy()
    await until(() => server.requests.at(-1)?.left() === true)
    await until(async () => (await gateway.call(`${gateway.url}/graphs/threads/${ID}`, { token: alice })).status === 200)
  }
})

void test('the audit names route, thread and the answers to interrupts', async (t) => {
  const made = await recorded(t, obliging, { config: { audit: { to: 'file', file: './audit.jsonl' } } })
  const { ask, create, alice, gateway } = made
  await create(alice, ID)
  await ask(alice, `/threads/${ID}/runs/wait`, { body: { ...NOTES, command: { resume: { decisions: [{ type: 'approve' }] } } } })
  await ask(alice, `/threads/${ID}/runs/wait`, { body: { ...NOTES, command: { resume: false } } })
  const read = (): readonly string[] => readFileSync(join(gateway.folder, 'audit.jsonl'), 'utf8').split('\n').slice(0, -1)
  await until(() => read().length >= 3)
  const lines = read().map((line) => JSON.parse(line) as AuditLine)
  t.match(lines, [
    { route: 'langgraph/threads/create', thread: ID },
    { route: 'langgraph/runs/create', thread: ID, agent: 'notes', interrupts: [{ id: null, answer: 'approved' }] },
    { route: 'langgraph/runs/create', thread: ID, interrupts: [{ id: null, answer: 'refused' }] },
  ])
})

void test('who may not answer interrupts may not pass over one either: by a state of a node, or by the next node', async (t) => {
  const shipped = edited('      options: [durability', '      command: [resume, goto, update]\n      options: [durability')
  const policy = shipped.replaceAll(/ {2}- name: langgraph-(?:chat|threads)\n/g, (rule) => `${rule}    interrupts: refuse\n`)
  const { ask, create, alice, server, reason } = await recorded(t, obliging, { policy })
  await create(alice, ID)
  const before = server.requests.length
  for (const [path, body] of [
    ['runs/wait', { ...NOTES, command: { resume: true } }],
    ['runs/wait', { ...NOTES, command: { goto: 'audit' } }],
    ['runs/wait', { ...NOTES, command: { update: { ran: ['approve'] } } }],
    ['state', { values: { ran: ['approve'] }, as_node: 'approve' }],
  ] as const) {
    t.equal((await ask(alice, `/threads/${ID}/${path}`, { body })).status, 403, JSON.stringify(body))
    t.equal(reason(), 'interrupt-answer-not-allowed')
  }
  t.equal(server.requests.length, before)
  t.equal((await ask(alice, `/threads/${ID}/state`, { body: { values: { role: 'member' } } })).status, 200)
})

void test('each identity header reaches the server, empty where the user has no value: it would keep that of a user before', async (t) => {
  const { ask, create, alice, server, signer } = await recorded(t, obliging, {
    config: {
      identity: { headers: { id: 'x-user', role: 'x-role', name: 'x-name' } },
      forwardHeaders: ['x-locale'],
    },
  })
  await create(alice, ID)
  const last = (name: string): unknown => server.requests.at(-1)?.headers.get(name)
  t.same([last('x-user'), last('x-role'), last('x-locale')], [['corp:alice'], [''], ['']])
  const olga = signer.sign('olga', { role: 'operator' })
  await ask(olga, '/threads', { body: {}, headers: { 'x-locale': 'de', 'x-role': 'forged' } })
  t.same([last('x-user'), last('x-role'), last('x-locale')], [['corp:olga'], ['operator'], ['de']])
})

void test('grants open the routes that they name: reading also copies and joins, and only writing runs, cancels and changes', async (t) => {
  const { ask, create, alice, bob, server, gateway } = await recorded(t, obliging, {
    policy: OWNERS_SHARE,
    config: { admin: { port: 0, credential: OPERATOR } },
  })
  await create(alice, ID)
  const grant = (right: string) =>
    gateway.call(`${gateway.url}/graphs/threadwarden/threads/${ID}/grants`, {
      token: alice,
      transport: 'multi-route',
      body: { user: 'corp:bob', right },
    })
  const READS = ['GET ', 'GET /state', 'GET /history', 'GET /runs', `GET /runs/${RUN}`, `GET /runs/${RUN}/join`, 'POST /history']
  const WRITES = ['POST /runs', 'POST /runs/stream', 'POST /state', `POST /runs/${RUN}/cancel`, 'PATCH ']
  const OWNS = ['DELETE ', `DELETE /runs/${RUN}`]
  const statuses = async (all: readonly string[]): Promise<ReadonlySet<number>> => {
    const found = new Set<number>()
    for (const one of all) {
      const [method = '', path = ''] = one.split(' ')
      const body = ['POST', 'PATCH'].includes(method) && !path.endsWith('cancel') ? { body: { ...NOTES, metadata: {} } } : {}
      found.add((await ask(bob, `/threads/${ID}${path}`, { method, ...body })).status)
    }
    return found
  }
  t.same([await statuses(READS), await statuses(WRITES), await statuses(OWNS)], [new Set([403]), new Set([403]), new Set([403])])
  t.equal((await grant('read')).status, 201)
  t.same([await statuses(READS), await statuses(WRITES), await statuses(OWNS)], [new Set([200]), new Set([403]), new Set([403])])
  server.answer(json([]))
  t.equal((await ask(bob, '/threads/search', { body: {} })).status, 200)
  t.same((server.requests.at(-1)?.json as { ids: unknown }).ids, [ID], 'a shared thread is listed')
  server.answer(json({ thread_id: COPY }))
  t.equal((await ask(bob, `/threads/${ID}/copy`, { body: {} })).status, 200)
  t.ok(owners(gateway.folder).includes(`${COPY}=corp:bob`), 'the copy is of who asks for it')
  server.answer(obliging)
  t.equal((await grant('write')).status, 201)
  t.same([await statuses(READS), await statuses(WRITES), await statuses(OWNS)], [new Set([200]), new Set([200]), new Set([403])])
  t.same((await ask(bob, `/threads/${ID}/runs`, { body: NOTES })).status, 200)
  t.ok(owners(gateway.folder).includes(`${ID}=corp:alice`), 'a guest’s run changes no owner')
  t.equal(codeOf(await ask(bob, '/threads', { body: { thread_id: ID } })), undefined)
})

void test('a copy that comes after its caller’s access has ended is nobody’s, and not told', async (t) => {
  const { ask, create, alice, bob, server, gateway } = await recorded(t, obliging, { policy: OWNERS_SHARE })
  await create(alice, ID)
  const grants = (body: object, method: string): Promise<Reply> =>
    gateway.call(`${gateway.url}/graphs/threadwarden/threads/${ID}/grants`, { token: alice, method, body })
  t.equal((await grants({ user: 'corp:bob', right: 'read' }, 'POST')).status, 201)
  server.answer(async (request, response) => {
    t.equal((await grants({ user: 'corp:bob' }, 'DELETE')).status, 204)
    return json({ thread_id: COPY })(request, response)
  })
  const late = await ask(bob, `/threads/${ID}/copy`, { body: {} })
  t.equal(late.status, 403)
  t.notMatch(late.text, COPY)
  t.same(owners(gateway.folder), [`${ID}=corp:alice`])
})

void test('an id that is no UUID, which the server would refuse a whole search for, is not searched for', async (t) => {
  const { ask, create, alice, server } = await recorded(t)
  await create(alice, ID)
  t.equal((await ask(alice, '/threads/imported-1/runs', { body: NOTES })).status, 200)
  server.answer(json([]))
  await ask(alice, '/threads/search', { body: {} })
  t.same((server.requests.at(-1)?.json as { ids: unknown }).ids, [ID])
})
