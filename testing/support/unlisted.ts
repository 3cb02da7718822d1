/** A gateway that lists threads from its table, before an upstream that the test plays and whose runner has no lists. */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Test } from 'tap'
import type { ListSource } from '../../src/core/wire/table-lists.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/port/store.ts'
import { runInput, type Reply } from './client.ts'
import { gateBefore, type GatedOptions, type GatedUpstream } from './gated.ts'
import { events, INFO, json, startUpstream, type Answering } from './upstream.ts'

/** What the runtime says to whatever needs a runner with lists (runtime-behaviour.md, "Routes"). */
export const NO_LISTS = { error: 'Missing CopilotKitIntelligence configuration.' }

/** `threadEndpoints` of a runtime without them. */
export const NONE = { list: false, inspect: false, mutations: false, realtimeMetadata: false }

/** Answers as a runtime whose runner has no lists. */
export const withoutLists: Answering = (request, response) => {
  if (request.target.endsWith('/info')) return json({ ...INFO, threadEndpoints: NONE })(request, response)
  return /\/threads/.test(request.target) ? json(NO_LISTS, 422)(request, response) : events()(request, response)
}

/** A thread in a list. */
export interface Item {
  readonly id: string
  readonly name: string | null
  readonly archived: boolean
}

export interface List {
  readonly threads: readonly Item[]
  readonly nextCursor?: string | null
}

export interface Unlisted extends GatedUpstream {
  /** Runs on threads, one after the other: the last is the last that was used. */
  readonly run: (token: string, ...threads: readonly string[]) => Promise<void>
  readonly list: (token: string, query?: string) => Promise<List>
  readonly ids: (token: string, query?: string) => Promise<readonly string[]>
  /** PATCH, DELETE or POST …/archive, as the runtime's client sends it. */
  readonly change: (token: string, method: string, path: string, body?: object) => Promise<Reply>
  /** The requests for lists and changes that reached the upstream. */
  readonly asked: () => readonly string[]
  /** The gateway's store, as another process would open it. */
  readonly store: () => Promise<Store>
}

/** What differs from the usual. */
export interface UnlistedOptions extends GatedOptions {
  readonly answering?: Answering
  /** What the upstream says of itself when the gateway asks; by default nothing of lists, where it is multi-route. */
  readonly questions?: Answering
}

/** Starts both. */
export async function unlisted(t: Test, lists: ListSource, options: UnlistedOptions = {}): Promise<Unlisted> {
  const { answering = withoutLists, questions, ...rest } = options
  const { ownership, ...config } = (rest.config ?? {}) as { ownership?: object }
  const upstream = await startUpstream(answering, { pair: rest.pair })
  t.teardown(() => upstream.close())
  if (questions !== undefined) upstream.answerQuestions(questions)
  const gate = await gateBefore(t, upstream.url, { ...rest, config: { ...config, ownership: { lists, ...ownership } } })
  const { base, call, gateway } = gate
  await gateway.ready()
  const list = async (token: string, query = ''): Promise<List> => (await call(`${base}/threads${query}`, { token })).json as List
  let used = 0
  return {
    ...gate,
    upstream,
    async run(token, ...threads) {
      for (const id of threads) {
        const { status } = await call(`${base}/agent/default/run`, { token, body: runInput(id) })
        if (status !== 200) throw new Error(`the run on ${id} was answered ${status}`)
        // Several runs have room in a millisecond.
        const database = new Database(join(gateway.folder, 'ownership.db'))
        database.prepare('UPDATE threads SET last_used_at = created_at + ? WHERE thread_id = ?').run((used += 1000), id)
        database.close()
      }
    },
    list,
    ids: async (token, query) => (await list(token, query)).threads.map(({ id }) => id),
    change: (token, method, path, body = {}) =>
      call(`${base}/threads/${path}`, { token, method, body: { agentId: 'default', ...body } }),
    asked: () =>
      upstream.requests
        .filter(({ target }) => target.includes('/threads'))
        .map(({ method, target }) => `${method} ${target.slice(target.indexOf('/threads'))}`),
    async store() {
      const store = await openSqliteStore(join(gateway.folder, 'ownership.db'))
      t.teardown(() => store.close())
      return store
    },
  }
}
