/** The upstream's own list: all pages of it, from runtimes of either transport, with whose threads they are. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import { importFrom, readMapping } from '../../src/tools/import-export/import.ts'
import { entriesOf, mappingOf } from '../../src/tools/import-export/source-file.ts'
import { byField, byMapping, upstreamEntries, type Whose, upstreamList } from '../../src/tools/import-export/upstream-list.ts'
import { openUpstream } from '../../src/http/upstream/upstream.ts'
import { clearThreads, startRuntime } from '../../examples/runtime.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { inPieces, READING } from './sources.ts'
import { importLines, key, optionsFor, own, ownersIn, startStore } from './store.ts'

const BASE = '/api/copilotkit'
const INFO = { version: '1.75.0', agents: { default: { name: 'default' } }, mode: 'sse' }

type Answering = (query: URLSearchParams, request: IncomingMessage) => { readonly status?: number; readonly body: unknown }

/** A runtime whose list is what the test says. */
async function startList(t: Test, answering: Answering) {
  const asked: string[] = []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams, search } = new URL(request.url ?? '', 'http://upstream')
    if (pathname === `${BASE}/threads`) asked.push(search)
    const { status = 200, body } = pathname === `${BASE}/info` ? { body: INFO } : answering(searchParams, request)
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

/** The entries of a list. */
function listOf(
  t: Test,
  url: string,
  whose: Whose,
  more: { readonly agentIds?: readonly string[]; readonly token?: string } = {},
) {
  const upstream = openUpstream({ url, timeouts: { connect: 1000, headers: 5000, body: 5000 } })
  t.teardown(() => upstream.close())
  const { agentIds = [], token } = more
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const { signal } = new AbortController()
  return upstreamEntries(upstreamList({ upstream, basePath: BASE, headers, named: null, agentIds, signal }), whose, '', READING)
}

const BY_FIELD = byField('createdById', 'corp')
const item = (id: string, more: object = {}): object => ({ id, createdById: 'alice', ...more })

async function gathered<T>(entries: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = []
  for await (const entry of entries) all.push(entry)
  return all
}

for (const mode of ['multi-route', 'single-route'] as const) {
  void test(`the threads of a real ${mode} runtime are imported with a mapping`, async (t) => {
    clearThreads()
    const runtime = await startRuntime({ mode })
    t.teardown(() => runtime.close())
    for (const threadId of ['t-1', 't-2', 't-3']) {
      await call(`${runtime.url}${BASE}/agent/default/run`, { body: runInput(threadId), transport: mode })
    }
    const { options, problems } = optionsFor()
    const read = await readMapping(
      mappingOf(inPieces('thread,user\nt-1,corp:alice\nt-2,corp:bob\nt-9,corp:bob\n'), 'csv', READING),
      options,
    )
    if (read === null) throw new Error('nothing interrupted it')
    const store = await startStore(t)
    const source = { entries: listOf(t, runtime.url, byMapping(read.mapping)), mapping: read.mapping }
    const tally = { added: 0, same: 0, conflicts: 0 }
    const report = await importFrom(source, store, tally, { ...options, onRead: () => {}, onSettled: () => {} })
    read.mapping.close()
    t.match(report, { read: 3, added: 2, unmapped: 1, unlisted: 1, conflicts: 0, complete: true })
    t.match(problems, [{ kind: 'unmapped', thread: 't-3' }])
    t.same(await ownersIn(store), ['t-1=corp:alice', 't-2=corp:bob'])
    const row = (await store.thread(key('t-1')))?.row
    t.match(row, { agentId: 'default', archived: false })
    t.ok(Math.abs((row?.lastUsedAt ?? 0) - Date.now()) < 60_000, 'with the times of the list')
  })
}

void test('all pages are read, archived threads too, with the facts of the list', async (t) => {
  const pages: Record<string, object> = {
    first: { threads: [item('a', { name: 'Plans', agentId: 'helper', archived: true })], nextCursor: 'two/2' },
    'two/2': { threads: [item('b', { createdAt: '2026-01-01T00:00:00.123456Z', updatedAt: 1769860800000 })], nextCursor: null },
  }
  const { url, asked } = await startList(t, (query) => ({ body: pages[query.get('cursor') ?? 'first'] }))
  t.match(await gathered(listOf(t, url, BY_FIELD)), [
    { threadId: 'a', owner: 'corp:alice', facts: { name: 'Plans', agentId: 'helper', archived: true } },
    { threadId: 'b', facts: { createdAt: Date.parse('2026-01-01T00:00:00.123Z'), lastUsedAt: 1769860800000 } },
  ])
  t.same(asked, ['?includeArchived=true', '?includeArchived=true&cursor=two%2F2'])
})

void test('each agent that is named is asked for, with the credential', async (t) => {
  const tokens: unknown[] = []
  const { url, asked } = await startList(t, (query, { headers }) => {
    tokens.push(headers.authorization)
    return { body: { threads: [item(`of-${query.get('agentId') ?? ''}`)] } }
  })
  const entries = await gathered(listOf(t, url, BY_FIELD, { agentIds: ['one', 'two'], token: 'abc' }))
  t.match(entries, [{ threadId: 'of-one' }, { threadId: 'of-two' }])
  t.same(asked, ['?includeArchived=true&agentId=one', '?includeArchived=true&agentId=two'])
  t.same(tokens, ['Bearer abc', 'Bearer abc'])
})

void test('facts that cannot be read are left out; a thread id or a user that is none is told', async (t) => {
  const odd = { name: 5, agentId: 'a b', archived: 'yes', createdAt: 'yesterday', updatedAt: {} }
  const threads = [item('a', odd), item('b c'), { id: 'c' }, item('d', { createdById: 7 }), item('e', { createdById: 'x\ny' })]
  const { url } = await startList(t, () => ({ body: { threads } }))
  t.match(await gathered(listOf(t, url, BY_FIELD)), [
    {
      kind: 'row',
      threadId: 'a',
      facts: { name: null, agentId: '', archived: false, createdAt: READING.now, lastUsedAt: READING.now },
    },
    { kind: 'fault', reason: /"b c" is not a thread id/ },
    { kind: 'unmapped', threadId: 'c', reason: 'its field createdById does not name an owner' },
    { kind: 'unmapped', threadId: 'd' },
    { kind: 'fault', threadId: 'e' },
  ])
})

void test('a thread that the mapping gives to two users, and what it cannot say, are told', async (t) => {
  const { url } = await startList(t, () => ({ body: { threads: [{ id: 'a' }, { id: 'b' }] } }))
  const { options, problems } = optionsFor()
  const text = 'thread,user\na,corp:x\na,corp:y\nb,crop:x\n'
  const read = await readMapping(mappingOf(inPieces(text), 'csv', READING), options)
  if (read === null) throw new Error('nothing interrupted it')
  t.teardown(() => read.mapping.close())
  t.equal(read.invalid, 1)
  t.match(problems, [{ kind: 'invalid', line: 4 }])
  t.match(await gathered(listOf(t, url, byMapping(read.mapping))), [
    { kind: 'conflict', threadId: 'a', line: 2, owner: 'corp:x' },
    { kind: 'conflict', threadId: 'a', line: 3, owner: 'corp:y' },
    { kind: 'unmapped', threadId: 'b' },
  ])
})

void test('a mapping to "nobody" withholds a thread of the list', async (t) => {
  const store = await startStore(t)
  const { url } = await startList(t, () => ({ body: { threads: [item('a')] } }))
  const { options, problems } = optionsFor()
  const read = await readMapping(mappingOf(inPieces('thread,user\na,nobody\n'), 'csv', READING), options)
  if (read === null) throw new Error('nothing interrupted it')
  t.teardown(() => read.mapping.close())
  const source = { entries: listOf(t, url, byMapping(read.mapping)), mapping: read.mapping }
  const tally = { added: 0, same: 0, conflicts: 0 }
  await importFrom(source, store, tally, { ...options, onRead: () => {}, onSettled: () => {} })
  t.same(problems, [])
  t.same(await ownersIn(store), ['a='])
})

void test('an owner that is there is not replaced by the list', async (t) => {
  const store = await startStore(t)
  await own(store, 'a', 'corp:bob')
  const { url } = await startList(t, () => ({ body: { threads: [item('a')] } }))
  const { options, problems } = optionsFor()
  const source = { entries: listOf(t, url, BY_FIELD), mapping: null }
  const tally = { added: 0, same: 0, conflicts: 0 }
  await importFrom(source, store, tally, { ...options, onRead: () => {}, onSettled: () => {} })
  t.match(problems, [{ kind: 'conflict', thread: 'a', user: 'corp:alice', with: ['corp:bob'] }])
  t.notOk('line' in (problems[0] ?? {}), 'a list has no lines')
  t.same(await ownersIn(store), ['a=corp:bob'])
})

void test('a mapping says no more than whose threads are', async (t) => {
  await t.rejects(gathered(mappingOf(inPieces('thread,user,name\n'), 'csv', READING)), { message: /no column "name"/ })
  t.match(await gathered(entriesOf(inPieces('thread,user,name\na,corp:x,n\n'), 'csv', READING)), [{ kind: 'row' }])
})

for (const [name, answering, message] of [
  ['answers 400', () => ({ status: 400, body: {} }), /it answered 400: name an agent with --agent/],
  ['answers 401', () => ({ status: 401, body: {} }), /it answered 401: pass a credential/],
  ['answers 422', () => ({ status: 422, body: {} }), /it answered 422: its runner keeps no list, so import a file/],
  ['answers 500', () => ({ status: 500, body: {} }), /it answered 500$/],
  ['answers no JSON', () => ({ body: 'oh' }), /is not a list of threads/],
  ['answers no list', () => ({ body: { threads: {} } }), /is not a list of threads/],
  ['lists a thread without an id', () => ({ body: { threads: [{ name: 'x' }] } }), /is not a list of threads/],
  [
    'has pages without an end',
    () => ({ body: { threads: [item('a')], nextCursor: 'again' } }),
    /list of the upstream does not end/,
  ],
] as const satisfies readonly (readonly [string, Answering, RegExp])[]) {
  void test(`from an upstream that ${name} nothing is taken`, async (t) => {
    const { url } = await startList(t, answering)
    await t.rejects(gathered(listOf(t, url, BY_FIELD)), { name: 'SourceFault', message })
  })
}

void test('an upstream that is away, and one that is no runtime, are told', async (t) => {
  await t.rejects(gathered(listOf(t, 'http://127.0.0.1:1', BY_FIELD)), {
    name: 'SourceFault',
    message: /got no answer \(ECONNREFUSED\)/,
  })
})

void test('what fails on a later page takes back what came before: nothing is imported', async (t) => {
  const store = await startStore(t)
  const { url } = await startList(t, (query) =>
    query.has('cursor') ? { status: 500, body: {} } : { body: { threads: [item('a')], nextCursor: 'x' } },
  )
  const { options } = optionsFor()
  const source = { entries: listOf(t, url, BY_FIELD), mapping: null }
  const tally = { added: 0, same: 0, conflicts: 0 }
  await t.rejects(importFrom(source, store, tally, { ...options, onRead: () => {}, onSettled: () => {} }), {
    name: 'SourceFault',
  })
  t.same(await ownersIn(store), [])
  t.match((await importLines(store, ['thread,user', 'a,corp:bob'])).report, { added: 1 })
})
