/**
 * The real LangGraph server in this process: its router, schemas, storage and graphs. Its tables are in memory, and each access to a
 * thread or run of Bob is noted. Runs are carried out at once, by the server's own code, when their request was answered.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Written } from '../message.ts'
import { ASKS } from './graph.ts'
import { loadPackage } from './packages.ts'
import { takeResolved, type Resolved } from './route-watch.ts'
import { ASSISTANT, checkpointOf, ENVIRONMENT, isForeignRun, isForeignThread, isOthers, KEPT, SECRETS } from './world.ts'

type Row = Readonly<Record<string, unknown>>
type Table<Value> = Record<string, Value>
type Method = (...args: readonly unknown[]) => unknown

interface Store {
  runs: Table<Row>
  threads: Table<Row>
  assistants: Table<Row>
  assistant_versions: readonly Row[]
  retry_counter: Table<number>
}
type Use = (store: Store, options: { readonly schedulePersist: () => void }) => unknown

/** A checkpoint, its metadata and the checkpoint before it. */
type Checkpoint = readonly [checkpoint: Uint8Array, metadata: Uint8Array, parentId: string | undefined]
type PendingWrite = readonly [taskId: string, channel: string, value: Uint8Array]

interface Checkpointer {
  storage: Table<Table<Table<Checkpoint>>>
  writes: Table<Table<PendingWrite>>
}

interface Queue {
  get(): Promise<readonly [id: string, message: { readonly topic: string; readonly data: unknown }]>
}

interface ServerModules {
  readonly startServer: (options: object, storage: object) => Promise<{ readonly cleanup: () => Promise<void> }>
  readonly FileSystemOps: new (connection: object) => { truncate: Method }
  readonly FileSystemAssistants: { readonly prototype: object }
  readonly FileSystemThreads: { readonly prototype: object; readonly State: { readonly prototype: object } }
  readonly FileSystemRuns: { readonly prototype: object; readonly Stream: { readonly prototype: object } }
  readonly StreamManager: { getQueue: (runId: string) => Queue; getControl: (runId: string) => unknown }
  readonly FileSystemPersistence: { readonly prototype: object }
  readonly checkpointer: Checkpointer
  readonly store: object
  readonly logger: { silent: boolean }
  readonly getLoopbackFetch: () => (request: Request) => Promise<Response>
  readonly streamState: (run: Row, options: object) => AsyncIterable<{ readonly event: string; readonly data: unknown }>
  readonly getGraph: unknown
  readonly GRAPH_SCHEMA: Record<string, object>
  readonly callWebhook: (result: object) => Promise<void>
  readonly serialiseAsDict: (value: unknown) => string
}

const FILES = [
  'server',
  'storage/ops',
  'storage/persist',
  'storage/checkpoint',
  'storage/store',
  'logging',
  'loopback',
  'stream',
  'graph/load',
  'webhook',
  'utils/serde',
]

export interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** Null where no route of the server has served the request. */
  readonly resolved: Resolved | null
}

export interface LangGraphServer {
  /** Makes everything as it was at first. */
  reset(): void
  /** Null for what is no request for any server. */
  answer(written: Written): Promise<Answered | null>
  /**
   * Carries out the runs that were created since the last time, and calls their webhooks.
   * @param which `unusual`: only those with something besides the thread, the graph and the caller in their configuration
   * @returns all that they tell
   */
  carryOut(which?: 'all' | 'unusual'): Promise<string>
  /** What was accessed of Bob, and what was done that no caller may do, since the last time. */
  accesses(): readonly string[]
  /** What was changed of the threads that Alice may not change. */
  changes(): readonly string[]
}

/** Most of the runs that webhooks begin, one after the other. */
const MOST_RUNS = 4

/** One is started for all: the server keeps its state in its modules. */
export async function startServer(): Promise<LangGraphServer> {
  const modules = await loadModules()
  const accesses = new Set<string>()
  const created: Row[] = []
  const note = (what: string): void => void accesses.add(what)

  const store: Store = { runs: {}, threads: {}, assistants: {}, assistant_versions: [], retry_counter: {} }
  const schedulePersist = (): void => {}
  const connection = {
    with: async (use: Use): Promise<unknown> => use(store, { schedulePersist }),
    async *withGenerator(use: Use | AsyncIterable<unknown>): AsyncGenerator {
      yield* typeof use === 'function' ? (use(store, { schedulePersist }) as AsyncIterable<unknown>) : use
    },
  }
  // The server would write its checkpoints to a file.
  Object.assign(modules.FileSystemPersistence.prototype, { schedulePersist })
  const operations = new modules.FileSystemOps(connection)
  const folder = await mkdtemp(join(tmpdir(), 'threadwarden-langgraph-fuzz-'))
  const graphs = { [ASSISTANT]: `${fileURLToPath(new URL('graph.ts', import.meta.url))}:graph` }
  const http = { app: fileURLToPath(new URL('route-watch.ts', import.meta.url)) }
  const options = { port: 0, nWorkers: 0, host: '127.0.0.1', cwd: folder, graphs, http }
  // Its requests do not come over its socket.
  const { cleanup } = await modules.startServer(options, { ops: operations })
  await cleanup()
  await rm(folder, { recursive: true, force: true })
  const fetch = modules.getLoopbackFetch()
  // The server would compile the graph's source for it, which takes seconds and tells nothing of a thread.
  modules.GRAPH_SCHEMA[ASSISTANT] = { [ASSISTANT]: {} }
  watch(modules, operations, note, created)

  const answer: LangGraphServer['answer'] = async ({ method, target, headers, body }) => {
    let request: Request
    try {
      request = new Request(`http://langgraph.internal${target}`, {
        method,
        headers: headers.map(([name, value]): [string, string] => [name, value]),
        ...(body === null ? {} : { body: Buffer.from(body) }),
      })
    } catch {
      return null
    }
    takeResolved()
    try {
      const response = await fetch(request)
      const text = await response.text()
      return { status: response.status, headers: Object.fromEntries(response.headers), text, resolved: takeResolved() }
    } catch (error) {
      note(`the server, which failed: ${String(error)}`)
      return { status: 500, headers: {}, text: '', resolved: takeResolved() }
    } finally {
      for (const name of takePollution()) note(`every object, which has ${name} now`)
    }
  }

  const carryOut: LangGraphServer['carryOut'] = async (which = 'all') => {
    let told = ''
    for (let count = 0; count < MOST_RUNS; count += 1) {
      const run = created.shift()
      if (run === undefined) break
      if (which === 'all' || isUnusual(run)) told += await carryOutRun(modules, run)
    }
    created.length = 0
    return told
  }

  const first = await seed(modules, store, answer, carryOut)
  const reset = (): void => {
    const world = first()
    store.assistants = world.assistants
    store.assistant_versions = world.assistantVersions
    store.retry_counter = {}
    store.threads = watched(world.threads, 'thread', isForeignThread, note)
    store.runs = watched(world.runs, 'run', isForeignRun, note)
    modules.checkpointer.storage = watched(world.storage, 'checkpoints of thread', isForeignThread, note)
    modules.checkpointer.writes = watched(world.writes, 'writes of thread', (key) => isForeignThread(threadOfWrites(key)), note)
    accesses.clear()
    created.length = 0
  }
  reset()
  const untouched = othersIn(store)
  return {
    reset,
    answer,
    carryOut,
    accesses() {
      const all = [...accesses]
      accesses.clear()
      return all
    },
    changes() {
      const now = othersIn(store)
      const faults = [...untouched.keys()]
        .filter((name) => now.get(name) !== untouched.get(name))
        .map((name) => `${name} was changed: ${now.get(name) ?? 'it is gone'}`)
      const more = [...now.keys()].filter((name) => !untouched.has(name)).map((name) => `there is a new ${name}`)
      accesses.clear()
      return [...faults, ...more]
    },
  }
}

async function loadModules(): Promise<ServerModules> {
  // The server would end no process for a fault that it has logged: a fault of the fuzz would not be seen.
  const faults = ['uncaughtException', 'unhandledRejection'] as const
  const before = faults.map((name) => new Set(process.listeners(name as 'uncaughtException')))
  // Nothing may be sent to a service of LangChain. A serialised message may ask for a secret of the environment.
  Object.assign(process.env, { LANGSMITH_TRACING: 'false', LANGCHAIN_TRACING_V2: 'false', [ENVIRONMENT]: SECRETS[2] })
  const loaded: object[] = []
  for (const file of FILES) loaded.push(await loadPackage<object>(`@langchain/langgraph-api/dist/${file}.mjs`))
  for (const [at, name] of faults.entries()) {
    for (const listener of process.listeners(name as 'uncaughtException')) {
      if (before[at]?.has(listener) !== true) process.off(name, listener)
    }
  }
  const modules = Object.assign({}, ...loaded) as ServerModules
  modules.logger.silent = true
  return modules
}

/** Notes each access by an id. A scan over all rows is none: what it finds shows in an answer or a change. */
function watched<Value>(
  rows: Table<Value>,
  kind: string,
  isTheirs: (key: string) => boolean,
  note: (what: string) => void,
): Table<Value> {
  let scanned: string | symbol | null = null
  const touch = (key: string | symbol): void => {
    if (typeof key === 'string' && key !== scanned && isTheirs(key)) note(`${kind} ${key}`)
  }
  return new Proxy(rows, {
    // `Object.values` and `Object.entries` ask for a key's descriptor, and then for its value.
    getOwnPropertyDescriptor(target, key) {
      scanned = key
      return Reflect.getOwnPropertyDescriptor(target, key)
    },
    get(target, key) {
      touch(key)
      scanned = null
      return Reflect.get(target, key) as unknown
    },
    has(target, key) {
      touch(key)
      return Reflect.has(target, key)
    },
    set(target, key, value) {
      scanned = null
      touch(key)
      return Reflect.set(target, key, value)
    },
    deleteProperty(target, key) {
      scanned = null
      touch(key)
      return Reflect.deleteProperty(target, key)
    },
  })
}

/** Where an operation of the server gets an id: a path into its arguments. */
interface Place {
  readonly isForeign: (id: unknown) => boolean
  readonly path: readonly (string | number)[]
}

function thread(...path: readonly (string | number)[]): Place {
  return { isForeign: isForeignThread, path }
}

function run(...path: readonly (string | number)[]): Place {
  return { isForeign: isForeignRun, path }
}

/** Where the methods of the server's tables take the ids of threads and runs. */
const IDS: Readonly<Record<string, readonly Place[]>> = {
  'threads.get': [thread(0)],
  'threads.put': [thread(0)],
  'threads.patch': [thread(0)],
  'threads.delete': [thread(0)],
  'threads.copy': [thread(0)],
  'threads.setStatus': [thread(0)],
  'state.get': [thread(0, 'configurable', 'thread_id')],
  'state.post': [thread(0, 'configurable', 'thread_id')],
  'state.bulk': [thread(0, 'configurable', 'thread_id')],
  'state.list': [thread(0, 'configurable', 'thread_id'), thread(1, 'before', 'configurable', 'thread_id')],
  'runs.put': [run(0), thread(2, 'config', 'configurable', 'thread_id'), thread(3, 'threadId')],
  'runs.get': [run(0), thread(1)],
  'runs.delete': [run(0), thread(1)],
  'runs.wait': [run(0), thread(1)],
  'runs.join': [run(0), thread(1)],
  'runs.cancel': [thread(0), run(1, 0)],
  'runs.search': [thread(0)],
  'stream.join': [run(0), thread(1)],
  'checkpointer.getTuple': [thread(0, 'configurable', 'thread_id')],
  'checkpointer.list': [thread(0, 'configurable', 'thread_id')],
  'checkpointer.put': [thread(0, 'configurable', 'thread_id')],
  'checkpointer.putWrites': [thread(0, 'configurable', 'thread_id')],
  'checkpointer.delete': [thread(0), run(1)],
  'checkpointer.copy': [thread(0), thread(1)],
}

/** What serves no route that is open to a caller. */
const CLOSED: Readonly<Record<string, readonly string[]>> = {
  assistants: ['put', 'patch', 'delete', 'setLatest'],
  store: ['get', 'put', 'search', 'delete', 'listNamespaces', 'batch'],
  server: ['truncate'],
}

function watch(modules: ServerModules, operations: object, note: (what: string) => void, created: Row[]): void {
  const { FileSystemThreads, FileSystemRuns, FileSystemAssistants, checkpointer, StreamManager } = modules
  const owners: Readonly<Record<string, object>> = {
    threads: FileSystemThreads.prototype,
    state: FileSystemThreads.State.prototype,
    runs: FileSystemRuns.prototype,
    stream: FileSystemRuns.Stream.prototype,
    checkpointer,
    assistants: FileSystemAssistants.prototype,
    store: modules.store,
    server: operations,
  }
  const wrap = (of: string, name: string, before: (args: readonly unknown[]) => void): void => {
    const owner = owners[of] as Record<string, Method>
    const method = owner[name]
    if (method === undefined) throw new Error(`the server has no ${of}.${name}`)
    owner[name] = function (...args) {
      before(args)
      return method.apply(this, [...args])
    }
  }
  for (const [name, places] of Object.entries(IDS)) {
    const [of = '', method = ''] = name.split('.')
    wrap(of, method, (args) => {
      for (const { isForeign, path } of places) {
        const id = path.reduce<unknown>((value, key) => (value as Row | null | undefined)?.[key], args)
        if (isForeign(id)) note(`${name} of ${String(id)}`)
      }
    })
  }
  for (const [of, methods] of Object.entries(CLOSED)) {
    for (const method of methods) wrap(of, method, () => note(`${of}.${method}, which is closed`))
  }
  noteCreated(FileSystemRuns.prototype as { put: Method }, created)
  // No run is under way in another process. A reader gets what a run has told so far, and the end.
  const control = StreamManager.getControl.bind(StreamManager)
  StreamManager.getControl = (runId) => {
    if (isForeignRun(runId)) note(`the control of run ${runId}`)
    return control(runId)
  }
  StreamManager.getQueue = (runId) => {
    if (isForeignRun(runId)) note(`the events of run ${runId}`)
    const word = KEPT.find((one) => one.runId === runId.toLowerCase())?.word
    const told = word === undefined ? [] : [{ topic: `run:${runId}:stream:values`, data: { messages: [word] } }]
    const messages = [...told, { topic: `run:${runId}:control`, data: 'done' }]
    return { get: async () => [String(messages.length), messages.shift() ?? { topic: `run:${runId}:control`, data: 'done' }] }
  }
}

function noteCreated(runs: { put: Method }, created: Row[]): void {
  const { put } = runs
  runs.put = async function (...args) {
    const all = (await put.apply(this, [...args])) as readonly Row[]
    if (all[0]?.['run_id'] === args[0]) created.push(all[0] as Row)
    return all
  }
}

const USUAL_CONFIGURABLE: ReadonlySet<string> = new Set([
  'run_id',
  'thread_id',
  'graph_id',
  'assistant_id',
  'user_id',
  'user-agent',
])

/** A run for a plain message. Each takes several milliseconds. */
function isUnusual({ thread_id: threadId, kwargs }: Row): boolean {
  const { configurable } = (kwargs as { readonly config: { readonly configurable: Row } }).config
  return configurable['thread_id'] !== threadId || Object.keys(configurable).some((name) => !USUAL_CONFIGURABLE.has(name))
}

/** As the server's worker does it (`queue.mjs`), which would look for runs once a second. */
async function carryOutRun(modules: ServerModules, run: Row): Promise<string> {
  const { streamState, getGraph, callWebhook, serialiseAsDict } = modules
  const kwargs = run['kwargs'] as Row
  let told = ''
  let checkpoint: unknown
  const onCheckpoint = (value: unknown): void => {
    checkpoint = value
    told += serialiseAsDict(value)
  }
  try {
    for await (const { event, data } of streamState(run, { getGraph, attempt: 1, onCheckpoint, onTaskResult: () => {} })) {
      told += `${event}: ${serialiseAsDict(data)}\n`
    }
  } catch (error) {
    told += String(error)
  }
  const { webhook } = kwargs
  // The server sends it to itself where it has no host. Another server is none that the fuzz is about.
  if (typeof webhook === 'string' && webhook.startsWith('/')) {
    const now = new Date()
    await callWebhook({ checkpoint, status: 'success', run, webhook, run_started_at: now, run_ended_at: now })
  }
  return told
}

const OF_EVERY_OBJECT: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype))

/** The names that every object of the process has got, and that it loses here. */
function takePollution(): readonly string[] {
  const more = Object.getOwnPropertyNames(Object.prototype).filter((name) => !OF_EVERY_OBJECT.has(name))
  for (const name of more) Reflect.deleteProperty(Object.prototype, name)
  return more
}

function threadOfWrites(key: string): unknown {
  return (JSON.parse(key) as readonly unknown[])[0]
}

interface World {
  readonly threads: Table<Row>
  readonly runs: Table<Row>
  readonly assistants: Table<Row>
  readonly assistantVersions: readonly Row[]
  readonly storage: Table<Table<Table<Checkpoint>>>
  readonly writes: Table<Table<PendingWrite>>
}

/** Lets the server make the threads, and then gives runs and checkpoints names that are the same in each process. */
async function seed(
  modules: ServerModules,
  store: Store,
  answer: LangGraphServer['answer'],
  carryOut: LangGraphServer['carryOut'],
): Promise<() => World> {
  const { checkpointer } = modules
  const names = new Map<string, string>()
  for (const { threadId, word } of KEPT) {
    await post(answer, '/threads', { thread_id: threadId, metadata: { graph_id: ASSISTANT, owner: word } })
    const messages = [{ role: 'user', content: `${word}: ${ASKS}` }]
    await post(answer, `/threads/${threadId}/runs`, { assistant_id: ASSISTANT, input: { messages }, metadata: { by: word } })
    await carryOut()
  }
  for (const run of Object.values(store.runs)) {
    const kept = KEPT.find(({ threadId }) => threadId === run['thread_id'])
    if (kept !== undefined) names.set(run['run_id'] as string, kept.runId)
  }
  for (const [threadId, spaces] of Object.entries(checkpointer.storage)) {
    const ids = Object.values(spaces).flatMap((of) => Object.keys(of))
    for (const [at, id] of ids.toSorted().entries()) names.set(id, checkpointOf(threadId, at + 1))
    for (const space of Object.keys(spaces))
      if (space !== '') names.set(space.slice(space.indexOf(':') + 1), checkpointOf(threadId, 0))
  }
  const renamed = (text: string): string => [...names].reduce((all, [from, to]) => all.replaceAll(from, to), text)
  const bytes = (given: Uint8Array): Uint8Array => Buffer.from(renamed(Buffer.from(given).toString('utf8')))
  const rows = (table: Table<Row>): readonly Row[] => JSON.parse(renamed(JSON.stringify(Object.values(table))), frozen) as Row[]
  const threads = rows(store.threads)
  const runs = rows(store.runs)
  const assistants = rows(store.assistants)
  const checkpoints = Object.entries(checkpointer.storage).flatMap(([threadId, spaces]) =>
    Object.entries(spaces).flatMap(([space, of]) =>
      Object.entries(of).map(([id, [checkpoint, metadata, parentId]]) => ({
        threadId,
        space: renamed(space),
        id: renamed(id),
        kept: [bytes(checkpoint), bytes(metadata), parentId === undefined ? undefined : renamed(parentId)] as const,
      })),
    ),
  )
  const pending = Object.entries(checkpointer.writes).map(
    ([key, of]) =>
      [
        renamed(key),
        Object.entries(of).map(([at, [task, channel, value]]) => [renamed(at), [renamed(task), channel, bytes(value)]] as const),
      ] as const,
  )
  return () => {
    const storage: Table<Table<Table<Checkpoint>>> = {}
    for (const { threadId, space, id, kept } of checkpoints) ((storage[threadId] ??= {})[space] ??= {})[id] = kept
    return {
      threads: tableBy('thread_id', threads, (row) => ({ ...timed(row), status: statusOf(row, 'idle') })),
      runs: tableBy('run_id', runs, (row) => ({ ...timed(row), status: statusOf(row, 'success') })),
      assistants: tableBy('assistant_id', assistants, timed),
      assistantVersions: assistants.map(timed),
      storage,
      writes: Object.fromEntries(pending.map(([key, of]) => [key, Object.fromEntries(of)])),
    }
  }
}

async function post(answer: LangGraphServer['answer'], target: string, body: object): Promise<void> {
  const headers = [['content-type', 'application/json']] as const
  const answered = await answer({ method: 'POST', target, headers, body: Buffer.from(JSON.stringify(body)) })
  if (answered?.status !== 200) throw new Error(`the server refused ${target}: ${answered?.text}`)
}

function tableBy(key: string, rows: readonly Row[], make: (row: Row) => Row): Table<Row> {
  return Object.fromEntries(rows.map((row) => [String(row[key]), make(row)] as const))
}

function frozen(_key: string, value: unknown): unknown {
  return Object.freeze(value)
}

const AT = 1_700_000_000_000

/** The server replaces what a row contains, and never changes it. */
function timed(row: Row): Row {
  return { ...row, created_at: new Date(AT), updated_at: new Date(AT) }
}

/** Where a run is under way, its thread is busy. */
function statusOf(row: Row, otherwise: string): string {
  const kept = KEPT.find(({ threadId }) => threadId === row['thread_id'])
  if (kept?.runIs !== 'pending') return otherwise
  return row['run_id'] === undefined ? 'busy' : 'pending'
}

/** The threads and runs that Alice may not change, as text. */
function othersIn({ threads, runs, assistants }: Store): ReadonlyMap<string, string> {
  const entries = [
    ...Object.values(threads).map((row) => ['thread', row, row['thread_id']] as const),
    ...Object.values(runs).map((row) => ['run', row, row['run_id']] as const),
  ].filter(([, row]) => isOthers(row['thread_id']))
  return new Map([
    ...entries.map(([kind, row, id]) => [`${kind} ${String(id)}`, JSON.stringify(row)] as const),
    ['assistants', JSON.stringify(assistants)],
  ])
}
