/**
 * Made-up histories of chats, through a real gateway: after every step the lists, the routes by id and the model agree
 * (docs/contributing/invariants.md, 2, 3 and 4). Another seed: THREADWARDEN_FUZZ_SEED.
 */
import fc from 'fast-check'
import type { Test } from 'tap'
import { Pool, type Dispatcher } from 'undici'
import { runInput } from '../../testing/support/client.ts'
import { enveloped } from '../../testing/support/enveloped.ts'
import { gateBefore } from '../../testing/support/gated.ts'
import type { Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { startUpstream } from '../../testing/support/upstream.ts'
import { CHAT_ROUTES, Model, OWNER_ROUTES, type ThreadRoute, type User } from './model.ts'
import { MemoryRuntime } from './runtime.ts'

/** Under each policy, for each pair of transports. */
const HISTORIES = 4
const NAMES = ['alice', 'bob', 'olga', 'anonymous'] as const
/** By place in a history; `:` is written in two ways in a path, and case makes another thread. */
const THREADS = ['t', 'T', 'a:b', 'old'] as const
/** Older than the gateway; no gateway takes the second one for an id, so nobody may have it. */
const OLD = ['old', '0F8FAD5B-D9CB-469F-A165-70867728950E'] as const

/** The operators of this one may use foreign threads: lists have to follow. */
const AUDITING = `
version: 1
operators: [{ role: operator }]
rules:
  - { routes: [info, threads/list], allow: [signed-in] }
  - { routes: [agent/run, agent/connect, agent/suggest], allow: [signed-in], threads: [own, unknown] }
  - { routes: [agent/stop, threads/messages, threads/update, threads/archive, annotate], allow: [signed-in], threads: [own] }
  - { routes: [agent/stop, threads/messages, threads/update, threads/archive, annotate], allow: [operator], threads: [foreign] }
  - { routes: [threads/events, threads/state], allow: [signed-in], threads: [own], refusal: 404 }
  - { routes: [threads/events, threads/state], allow: [operator], threads: [foreign], refusal: 404 }
  - { routes: [threads/clear], allow: [operator] }
`

const who = fc.constantFrom(...NAMES.slice(0, 3), ...NAMES)
const thread = fc.constantFrom(...THREADS)
/** One step of a history, as data. */
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ op: fc.constant('run' as const), who, thread, status: fc.constant(200) }) },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant('run' as const), who, thread, status: fc.constantFrom(400, 404, 408, 429, 500) }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('race' as const), who, other: who, thread }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('delete' as const), who, thread, lingers: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constantFrom(...[...OWNER_ROUTES, ...CHAT_ROUTES].filter((route) => route !== 'delete' && route !== 'run')),
      who,
      thread,
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('clear' as const), who }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('page' as const), who, limit: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('turn' as const), who }) },
)
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never
/** A history: how the upstream cuts its pages, and what happens. */
const history = fc.record({
  pageSize: fc.integer({ min: 1, max: 4 }),
  steps: fc.array(step, { minLength: 20, maxLength: 30, size: 'max' }),
})

interface List {
  readonly threads: readonly { readonly id: string }[]
  readonly nextCursor: string | null
}

/** An answer. The support client's fetch would cost as much as all the rest. */
interface Reply {
  readonly status: number
  /** A refusal, or a list. */
  readonly json: ({ readonly code?: string } & Partial<List>) | undefined
}

/** Starts a gateway before the stand-in; the result plays a history and throws where something disagrees. */
async function startPlayer(
  t: Test,
  pair: Pair,
  auditing: boolean,
): Promise<(history: { pageSize: number; steps: Step[] }) => Promise<void>> {
  const runtime = new MemoryRuntime(new Model(auditing))
  const upstream = await startUpstream(runtime.answer, { pair })
  t.teardown(() => upstream.close())
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const config = { authentication: { ...signer.authentication, mode: 'optional' } }
  const { base, ...tokens } = await gateBefore(t, upstream.url, {
    pair,
    signer,
    config,
    ...(auditing ? { policy: AUDITING } : {}),
  })
  const users: readonly User[] = NAMES.map((name) => (name === 'anonymous' ? { name } : { name, token: tokens[name] }))
  const userOf = (name: string): User => users.find((user) => user.name === name)!
  let played = 0

  const { origin, pathname } = new URL(base)
  const pool = new Pool(origin, { connections: 16 })
  t.teardown(() => pool.destroy())

  const ask = async (user: User, method: Dispatcher.HttpMethod, path: string, sent?: object): Promise<Reply> => {
    const plain = { method, target: `${pathname}/${path}`, body: sent === undefined ? undefined : JSON.stringify(sent) }
    const envelope = pair.client === 'single-route' ? enveloped(plain) : null
    const { target, body } = envelope ?? plain
    const headers = {
      ...(user.token === undefined ? {} : { authorization: `Bearer ${user.token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    }
    const answer = await pool.request({
      method: envelope === null ? method : 'POST',
      path: target,
      headers,
      body: body ?? null,
    })
    const text = await answer.body.text()
    const isJson = answer.headers['content-type'] === 'application/json'
    return { status: answer.statusCode, json: isJson ? (JSON.parse(text) as Reply['json']) : undefined }
  }

  const request = (user: User, route: ThreadRoute, id: string): Promise<Reply> => {
    const at = `threads/${encodeURIComponent(id)}`
    switch (route) {
      case 'run':
      case 'connect':
      case 'suggest':
        return ask(user, 'POST', `agent/default/${route}`, runInput(id))
      case 'stop':
        return ask(user, 'POST', `agent/default/stop/${id}`)
      case 'update':
        return ask(user, 'PATCH', at, { agentId: 'default', name: `named by ${user.name}` })
      case 'delete':
        return ask(user, 'DELETE', at, { agentId: 'default' })
      case 'archive':
        return ask(user, 'POST', `${at}/archive`, { agentId: 'default' })
      case 'annotate':
        return ask(user, 'POST', 'annotate', { threadId: id, type: 'thumb', payload: {} })
      default:
        return ask(user, 'GET', `${at}/${route}`)
    }
  }

  const page = async (user: User, query: string): Promise<List> => {
    const reply = await ask(user, 'GET', `threads${query}`)
    expect(reply.status, user.name === 'anonymous' ? 403 : 200, `list${query} of ${user.name}`)
    return reply.status === 200 ? (reply.json as List) : { threads: [], nextCursor: null }
  }

  /** The whole list, by following the cursors. */
  const walk = async (user: User, limit: number): Promise<string[]> => {
    const query = limit === 0 ? '?' : `?limit=${limit}`
    let list = await page(user, limit === 0 ? '' : query)
    const ids: string[] = []
    for (;;) {
      if (limit !== 0 && list.threads.length > limit) throw new Error(`a page of more than ${limit} for ${user.name}`)
      ids.push(...list.threads.map(({ id }) => id))
      if (list.nextCursor === null) return ids
      list = await page(user, `${query}&cursor=${list.nextCursor}`)
    }
  }

  return async ({ pageSize, steps }) => {
    const model = new Model(auditing)
    // Every history has threads of its own, and so a table that is empty for it.
    const prefix = `h${(played += 1)}-`
    const ids = THREADS.map((name) => prefix + name)
    const strangers = OLD.map((name) => (name === 'old' ? prefix + name : name))
    const known = [...new Set([...ids, ...strangers])]
    let held: { readonly user: User; readonly cursor: string } | null = null
    runtime.reset(model, pageSize, strangers)

    const attempt = async (user: User, route: ThreadRoute, id: string): Promise<Reply> => {
      const permitted = model.may(user.name, route, id)
      const reply = await request(user, route, id)
      // No answer of the stand-in has a code.
      expect(reply.json?.code === undefined, permitted, `${route} of ${id} by ${user.name}, owned by ${model.tell(id)}`)
      return reply
    }

    const act = async (one: Step): Promise<void> => {
      const user = userOf(one.who)
      const id = 'thread' in one ? prefix + one.thread : ''
      switch (one.op) {
        case 'run': {
          runtime.runStatus = one.status
          const permitted = model.may(user.name, 'run', id)
          const reply = await attempt(user, 'run', id)
          if (permitted) expect(reply.status, one.status, 'the answer of a run')
          if (permitted) model.ran(user.name, id, one.status)
          return
        }
        case 'race': {
          runtime.runStatus = 200
          const racers = [...new Set([user, userOf(one.other)])]
          const able = racers.filter(({ name }) => model.may(name, 'run', id))
          const replies = await Promise.all(racers.map((racer) => request(racer, 'run', id)))
          const winners = racers.filter((_racer, at) => replies[at]!.status === 200)
          expect(winners.length, Math.min(able.length, 1), `winners of a race for ${id}, owned by ${model.tell(id)}`)
          for (const winner of winners) {
            expect(able.includes(winner), true, `${winner.name} may run ${id}`)
            model.ran(winner.name, id, 200)
          }
          return
        }
        case 'delete': {
          runtime.deletion = one.lingers ? 'lingers' : 'confirmed'
          const permitted = model.may(user.name, 'delete', id)
          await attempt(user, 'delete', id)
          if (permitted) model.deleted(id)
          return
        }
        case 'clear': {
          const reply = await ask(user, 'POST', 'threads/clear')
          return expect(reply.status, model.mayClear(user.name) ? 204 : 403, `clear by ${user.name}`)
        }
        case 'page': {
          const { nextCursor } = await page(user, `?limit=${one.limit}`)
          if (nextCursor !== null) held = { user, cursor: nextCursor }
          return
        }
        case 'turn': {
          // A cursor from before what happened since: good for its own user alone, and what it gives holds now.
          if (held === null) return
          const reply = await ask(user, 'GET', `threads?cursor=${held.cursor}`)
          expect(reply.status, user === held.user ? 200 : user.token === undefined ? 403 : 400, 'the status of a later page')
          for (const item of reply.status === 200 ? (reply.json as List).threads : []) {
            expect(model.may(user.name, 'messages', item.id), true, `${item.id} on a later page of ${user.name}`)
          }
          return
        }
        default:
          await attempt(user, one.op, id)
      }
    }

    /** What must hold after each step. */
    const examine = async (changed: readonly string[], at: number): Promise<void> => {
      // Who is nobody gets no list; what they are refused by id stands below.
      expect((await walk(userOf('anonymous'), 0)).length, 0, 'the list of anonymous')
      const people = users.slice(0, 3)
      const readable = await Promise.all(
        people.map(async (user) => {
          const statuses = await Promise.all(known.map(async (id) => [id, (await request(user, 'messages', id)).status] as const))
          return new Set(statuses.filter(([, status]) => status === 200).map(([id]) => id))
        }),
      )
      const lists = await Promise.all(people.map((user, place) => walk(user, (at + place) % 4)))
      for (const [place, { name }] of people.entries()) {
        const mine = runtime.listed().filter((id) => readable[place]!.has(id))
        expect(lists[place]!.join(' '), mine.join(' '), `the list of ${name} and what ${name} may read`)
        for (const id of known) {
          expect(readable[place]!.has(id), model.may(name, 'messages', id), `${name} reads ${id}, owned by ${model.tell(id)}`)
        }
      }
      // No route by id contradicts another; what did not change is what it was, or the messages above would tell.
      // A refused DELETE deletes nothing, as with the real runtime.
      runtime.deletion = 'refused'
      const routes = [...OWNER_ROUTES, 'connect', 'suggest'] as const
      for (const id of changed) {
        await Promise.all(users.flatMap((user) => routes.map((route) => attempt(user, route, id))))
      }
      expect(runtime.trespasses.splice(0).join('; '), '', 'what reached the upstream against the model')
    }

    for (const [at, one] of steps.entries()) {
      try {
        const before = ids.map((id) => model.tell(id))
        await act(one)
        await examine(at === 0 ? ids : ids.filter((id, place) => model.tell(id) !== before[place]), at)
      } catch (error) {
        throw new Error(`step ${at} ${JSON.stringify(one)}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }
}

function expect(found: unknown, wanted: unknown, what: string): void {
  if (found !== wanted) throw new Error(`${what}: ${String(found)}, not ${String(wanted)}`)
}

for (const auditing of [false, true]) {
  const policy = auditing ? 'a policy whose operators may use foreign threads' : 'the shipped policy'
  void testEachPair(`lists, routes by id and model agree in every history, under ${policy}`, async (t, pair) => {
    const seed = Number(process.env['THREADWARDEN_FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
    t.comment(`THREADWARDEN_FUZZ_SEED=${seed}`)
    const play = await startPlayer(t, pair, auditing)
    const found = await fc.check(fc.asyncProperty(fc.limitShrink(history, 30), play), { seed, numRuns: HISTORIES })
    if (!found.failed) return t.pass(`${found.numRuns} histories`)
    const [smallest] = found.counterexample ?? []
    return t.fail(`${String(found.errorInstance)}\nTHREADWARDEN_FUZZ_SEED=${seed}\n${JSON.stringify(smallest)}`)
  })
}
