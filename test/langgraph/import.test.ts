/** The owners of a LangGraph server's threads, from their metadata and from a mapping. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { LANGGRAPH } from '../../src/core/route/transport.ts'
import { threadPages } from '../../src/http/upstream/thread-pages.ts'
import { openUpstream } from '../../src/http/upstream/upstream.ts'
import { json, startUpstream } from '../../testing/support/upstream.ts'
import { deployment } from '../cli/deployment.ts'
import { graphsAt, startAdopted } from './adopted.ts'

const IMPORT = ['threads', 'import', '--from-upstream'] as const
const BY_METADATA = [...IMPORT, '--owner-field', '/metadata/owner', '--issuer', 'corp'] as const

void test('the owners of threads are imported from their metadata', async (t) => {
  const server = await startAdopted(t)
  const alices = await server.begin({ owner: 'alice', graph_id: 'notes' })
  const bobs = await server.begin({ owner: 'bob' })
  const nobodys = await server.begin({ owner: 7 })
  const taken = await server.begin({ owner: 'alice' })
  const { folder, store, command, data } = await deployment(t, graphsAt(server.url))
  await store.assign({ scope: 'graphs', threadId: taken }, 'corp:bob', 1)
  const owners = async () =>
    Object.fromEntries((await store.threads({ deleted: 'too' }, null, 5000)).map(({ threadId, owner }) => [threadId, owner]))

  await t.test('a dry run shows the result, and changes nothing', async (t) => {
    const dry = await data(...BY_METADATA, '--dry-run')
    t.match(dry, { dryRun: true, complete: true, read: 4, added: 2, conflicts: 1, unmapped: 1, invalid: 0 })
    t.same(await owners(), { [taken]: 'corp:bob' })
  })

  await t.test('an import adds owners, and reports conflicts and threads without an owner', async (t) => {
    const ended = await command(...BY_METADATA)
    t.equal(ended.code, 1)
    t.match(
      ended.stdout,
      /^2 +added\n0 +existed already\n1 +conflicts, not changed\n0 +invalid\n1 +in the list, without an owner$/m,
    )
    t.match(ended.stderr, `${nobodys} at graphs: its field /metadata/owner does not name an owner`)
    t.match(ended.stderr, `${taken} at graphs (corp:alice): it belongs to corp:bob`)
    t.same(await owners(), { [alices]: 'corp:alice', [bobs]: 'corp:bob', [taken]: 'corp:bob' })
    const row = (await store.thread({ scope: 'graphs', threadId: alices }))?.row
    t.match(row, { agentId: 'notes', archived: false, name: null })
    t.ok(Math.abs((row?.createdAt ?? 0) - Date.now()) < 300_000, 'with the times of the list')
  })

  await t.test('a mapping says whose the threads are', async (t) => {
    const map = join(folder, 'map.csv')
    writeFileSync(map, `thread,user\n${nobodys},corp:carol\n`)
    t.match(await data(...IMPORT, '--map', map), { read: 4, added: 1, same: 3, unlisted: 0, unmapped: 0 })
    t.equal((await owners())[nobodys], 'corp:carol')
  })

  await t.test('each thread of a list of more than one page is imported, once', async (t) => {
    const ids: string[] = []
    for (let made = 0; made < 1004; made += 50) {
      const some = Array.from({ length: Math.min(50, 1004 - made) }, () => server.begin({ owner: 'dora' }))
      ids.push(...(await Promise.all(some)))
    }
    t.match(await data(...BY_METADATA), { read: 1008, added: 1004, repeated: 0, same: 3, conflicts: 1, unmapped: 0 })
    const now = await owners()
    t.same(
      ids.filter((id) => now[id] !== 'corp:dora'),
      [],
    )
  })
})

void test('options that are for runtimes are refused, and a plain name is answered with a pointer', async (t) => {
  const { command } = await deployment(t, graphsAt('http://127.0.0.1:1'))
  t.match(await command(...IMPORT, '--owner-field', 'owner', '--issuer', 'corp'), {
    code: 2,
    stderr: /upstreams\.graphs is a LangGraph server, so write a JSON pointer into a thread: \/metadata\/owner/,
  })
  t.match(await command(...BY_METADATA, '--agent', 'notes'), { code: 2, stderr: /--agent is for runtimes/ })
  t.match(await command(...IMPORT, '--owner-field', '/metadata/~2', '--issuer', 'corp'), {
    code: 2,
    stderr: /is not a JSON pointer: write \/metadata\/owner/,
  })
  t.match(await command(...BY_METADATA), { code: 1, stderr: /gave no list \(ECONNREFUSED\); nothing was imported/ })
})

void test('from a server that refuses its list nothing is imported, and the remedy is named', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const { command } = await deployment(t, graphsAt(upstream.url))
  for (const [status, hint] of [
    [401, /answered 401: pass a credential with --token-file/],
    [404, /answered 404: check that a LangGraph server listens there/],
  ] as const) {
    upstream.answerQuestions(json({}, status))
    t.match(await command(...BY_METADATA), { code: 1, stderr: hint })
  }
  upstream.answerQuestions(json([{ id: 'a' }]))
  t.match(await command(...BY_METADATA), { code: 1, stderr: /is not a list of threads; nothing was imported/ })
})

void test('threads that begin between two pages are listed, and a deleted one ends the list', async (t) => {
  let threads = ['a', 'b', 'c']
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.answerQuestions((request, response) => {
    const { offset, select, sort_by, sort_order } = request.json as Readonly<Record<string, number>>
    t.match({ select, sort_by, sort_order }, { select: ['thread_id'], sort_by: 'created_at', sort_order: 'asc' })
    // A server may give fewer than were asked for.
    const page = threads.slice(offset, (offset ?? 0) + 2).map((id) => ({ thread_id: id }))
    return json(page)(request, response)
  })
  const asked = openUpstream({ url: upstream.url, timeouts: { connect: 2000, headers: 0, body: 0 } })
  t.teardown(() => asked.close())
  const parts = { upstream: asked, basePath: '', facts: LANGGRAPH, headers: {}, signal: AbortSignal.timeout(30_000) }
  const listed: string[] = []
  for await (const page of threadPages(parts, null)) {
    listed.push(...page.map(({ id }) => id))
    if (threads.length === 3) threads = [...threads, 'd']
  }
  t.same(listed, ['a', 'b', 'c', 'd'])
  const shrinking = async (): Promise<void> => {
    for await (const _page of threadPages(parts, null)) threads = threads.filter((id) => id !== 'a')
  }
  await t.rejects(shrinking(), { name: 'NoList', message: /threads were deleted while the upstream gave its list/ })
})
