/** Creations, runs and copies on a LangGraph server over two gateway processes on one store, of which one is killed meanwhile. */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { prepareSite, type Gateway } from '../../testing/races/gateways.ts'
import { call, type Reply } from '../../testing/support/client.ts'
import { NOWHERE } from '../../testing/support/gated.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startPostgres } from '../../testing/support/postgres.ts'
import { rows } from '../../testing/support/rows.ts'
import { startUpstream, json, type Answering, type Recorded } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

const NOTES = { assistant_id: 'notes' }

/** A server with threads: it makes them, copies them, and says which it has. */
class Threads {
  readonly ids = new Set<string>()
  /** Whether an answer waits. The server has done what it was asked then. */
  isHolding = false
  held: ServerResponse | null = null
  readonly answer: Answering = (request, response) => {
    if (!request.headers.has('x-request-id')) return json([])(request, response)
    const [status, body] = this.#done(request)
    if (this.isHolding && request.method === 'POST') this.held = response
    else return json(body, status)(request, response)
  }

  #done({ method, target, json: body }: Recorded): readonly [number, object] {
    const [, , path = '', what] = target.split('/')
    if (method === 'GET') return this.ids.has(path) ? [200, { thread_id: path }] : [404, {}]
    const { thread_id, if_exists, if_not_exists } = (body ?? {}) as Record<string, string | undefined>
    const named = thread_id ?? path
    if (what === 'copy') return [200, { thread_id: this.#make(crypto.randomUUID()) }]
    if (what === 'runs' && !this.ids.has(named) && if_not_exists !== 'create') return [422, {}]
    if (what === undefined && this.ids.has(named) && if_exists !== 'do_nothing') return [409, {}]
    return [200, { thread_id: this.#make(named) }]
  }

  #make(id: string): string {
    this.ids.add(id)
    return id
  }
}

interface Owned {
  readonly thread_id: string
  readonly user_id: string
  readonly provisional: boolean
}

interface Scene {
  readonly threads: Threads
  readonly owned: () => Promise<readonly Owned[]>
  readonly start: () => Promise<Gateway>
  readonly ask: (gateway: Gateway, user: string, path: string, body?: object) => Promise<Reply>
}

const STORES = ['sqlite', 'postgres'] as const

type StoreKind = (typeof STORES)[number]

/** An empty store, and what its table has. */
async function storeFor(t: Test, kind: StoreKind): Promise<Pick<Scene, 'owned'> & { readonly store: string }> {
  if (kind === 'postgres') {
    const { url, admin } = await startPostgres(t)
    const query = 'SELECT thread_id, user_id, provisional FROM threadwarden.threads ORDER BY thread_id'
    return { store: url, owned: async () => (await admin(query)) as unknown as readonly Owned[] }
  }
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const owned = async () => rows(folder).map((row) => ({ ...row, provisional: row.provisional === 1 }))
  return { store: `sqlite:${join(folder, 'ownership.db')}`, owned }
}

async function scene(t: Test, unknownThread: string, kind: StoreKind): Promise<Scene> {
  const threads = new Threads()
  const server = await startUpstream(threads.answer)
  t.teardown(() => server.close())
  const { store, owned } = await storeFor(t, kind)
  const { start, tokenOf } = prepareSite(t, { store }, NOWHERE, undefined, {
    upstreams: { graphs: { kind: 'langgraph', url: server.url, unknownThread } },
  })
  return {
    threads,
    owned,
    start,
    ask: ({ base }, user, path, body) =>
      call(`${new URL(base).origin}/graphs${path}`, { token: tokenOf(user), ...(body === undefined ? {} : { body }) }),
  }
}

/** Sends a request, and kills its gateway when the server has done it and not yet answered. */
async function killed({ threads }: Scene, gateway: Gateway, request: () => Promise<Reply>): Promise<void> {
  threads.isHolding = true
  const asked = request().catch(() => null)
  await until(() => threads.held !== null)
  await gateway.kill()
  threads.held?.destroy()
  threads.held = null
  threads.isHolding = false
  await asked
}

const CASES = STORES.flatMap((kind) => (['claim', 'verify'] as const).map((unknownThread) => [kind, unknownThread] as const))

for (const [kind, unknownThread] of CASES) {
  const title = 'a thread stays with who asked for it, where the gateway is killed before the answer'
  void test(`${kind}, ${unknownThread}: ${title}`, async (t) => {
    const made = await scene(t, unknownThread, kind)
    const { ask, start, owned, threads } = made
    const [a, b] = await Promise.all([start(), start()])
    const created = crypto.randomUUID()
    await killed(made, a, () => ask(a, 'alice', '/threads', { thread_id: created }))
    t.match(await owned(), [{ thread_id: created, user_id: 'corp:alice', provisional: true }])
    for (const [path, body] of [
      ['/threads', { thread_id: created, if_exists: 'do_nothing' }],
      [`/threads/${created}/runs`, NOTES],
    ] as const) {
      t.equal((await ask(b, 'bob', path, body)).status, 403)
    }
    t.equal((await ask(b, 'alice', '/threads', { thread_id: created, if_exists: 'do_nothing' })).status, 200)
    t.equal((await ask(b, 'alice', `/threads/${created}`)).status, 200)
    const c = await start()
    const before = new Set(threads.ids)
    await killed(made, c, () => ask(c, 'alice', `/threads/${created}/copy`, {}))
    const copies = [...threads.ids].filter((id) => !before.has(id))
    t.equal(copies.length, 1, 'the server has a copy of which nobody knows')
    t.same(
      (await owned()).map((row) => `${row.thread_id}=${row.user_id}`),
      [`${created}=corp:alice`],
    )
    for (const user of ['alice', 'bob']) {
      t.equal((await ask(b, user, `/threads/${copies[0]}`)).status, 403)
      t.equal((await ask(b, user, `/threads/${copies[0]}/copy`, {})).status, 403)
      if (unknownThread === 'verify') {
        t.equal((await ask(b, user, `/threads/${copies[0]}/runs`, NOTES)).status, 403)
        t.equal((await ask(b, user, '/threads', { thread_id: copies[0] })).status, 403)
      }
    }
  })
}

for (const kind of STORES) {
  void test(`${kind}: of two users who begin one id at two gateways at once, one has it, on both`, async (t) => {
    const { ask, start, owned } = await scene(t, 'verify', kind)
    const [a, b] = await Promise.all([start(), start()])
    for (let round = 0; round < 20; round += 1) {
      const id = crypto.randomUUID()
      const begin = (gateway: Gateway, user: string): Promise<Reply> =>
        round % 2 === 0
          ? ask(gateway, user, '/threads', { thread_id: id, if_exists: 'do_nothing' })
          : ask(gateway, user, `/threads/${id}/runs`, { ...NOTES, if_not_exists: 'create' })
      const replies = await Promise.all([begin(a, 'alice'), begin(b, 'bob')])
      const won = replies.filter(({ status }) => status === 200)
      t.equal(won.length, 1, replies.map(({ status, text }) => `${status} ${text}`).join(', '))
      const [winner, loser] = replies[0].status === 200 ? (['alice', 'bob'] as const) : (['bob', 'alice'] as const)
      t.equal((await owned()).find((row) => row.thread_id === id)?.user_id, `corp:${winner}`)
      for (const gateway of [a, b]) {
        t.equal((await ask(gateway, winner, `/threads/${id}`)).status, 200)
        t.equal((await ask(gateway, loser, `/threads/${id}`)).status, 403)
      }
      const { thread_id } = (await ask(a, winner, `/threads/${id}/copy`, {})).json as { thread_id: string }
      t.equal((await ask(b, winner, `/threads/${thread_id}`)).status, 200, 'a copy is known to the other gateway at once')
      t.equal((await ask(b, loser, `/threads/${thread_id}`)).status, 403)
    }
  })
}
