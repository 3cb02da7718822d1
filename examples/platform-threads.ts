/**
 * What the stand-in of the managed platform knows: threads with their user, the lock of a run, the events of all runs, and
 * the tokens with which browsers join. It is gone with its process.
 */
import { randomBytes } from 'node:crypto'

/** An AG-UI event as the runtime hands it over. */
export type PlatformEvent = Readonly<Record<string, unknown>> & { readonly type: string; readonly runId: string }

/** A thread, in the fields that the runtime shows of it. */
export interface PlatformThread {
  readonly id: string
  /** The user as the runtime named it, which is all that the platform ever learns of who is asking. */
  readonly createdById: string
  readonly agentId: string
  readonly organizationId: string
  readonly createdAt: string
  name: string | null
  archived: boolean
  updatedAt: string
}

interface Kept {
  readonly thread: PlatformThread
  readonly events: PlatformEvent[]
  /** The run that holds the lock. */
  runId: string | null
}

/** A request that the platform refuses. */
export class PlatformRefusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** The runs of a thread as they happen. */
export type Listener = (event: PlatformEvent) => void

const isLast = ({ type }: PlatformEvent) => type === 'RUN_FINISHED' || type === 'RUN_ERROR'

/** All threads of all users. */
export class PlatformThreads {
  /** Every join token and join code that was issued. */
  readonly secrets: string[] = []
  readonly #threads = new Map<string, Kept>()
  readonly #topics = new Map<string, string>()
  readonly #codes = new Map<string, string>()
  readonly #listeners = new Map<string, Set<Listener>>()

  /** A thread of this user. A foreign thread is reported as missing. */
  find(id: string, userId: string): PlatformThread {
    const kept = this.#threads.get(id)
    if (kept?.thread.createdById !== userId) throw new PlatformRefusal(404, 'no such thread')
    return kept.thread
  }

  create(id: string, userId: string, agentId: string): PlatformThread {
    if (this.#threads.has(id)) throw new PlatformRefusal(409, 'there is such a thread')
    const now = new Date().toISOString()
    const thread = { id, createdById: userId, agentId, organizationId: 'org', createdAt: now, name: null, archived: false }
    const kept = { thread: { ...thread, updatedAt: now }, events: [], runId: null }
    this.#threads.set(id, kept)
    return kept.thread
  }

  /** Takes a thread away, also without its user's will: what a test calls a platform that has lost one. */
  remove(id: string): void {
    this.#threads.delete(id)
  }

  /** Lets one run at a time into a thread. */
  lock(id: string, userId: string, runId: string): void {
    this.find(id, userId)
    const kept = this.#threads.get(id)!
    if (kept.runId !== null) throw new PlatformRefusal(409, 'the thread is locked')
    kept.runId = runId
    kept.thread.updatedAt = new Date().toISOString()
  }

  unlock(id: string, runId: string): void {
    const kept = this.#threads.get(id)
    if (kept?.runId === runId) kept.runId = null
  }

  /** The run that is going on in a thread. */
  running(id: string): string | null {
    return this.#threads.get(id)?.runId ?? null
  }

  /** Keeps an event of the run that holds the lock. Its last one gives the lock back. */
  append(id: string, event: PlatformEvent): void {
    const kept = this.#threads.get(id)
    if (kept === undefined || kept.runId !== event.runId) throw new PlatformRefusal(409, 'the run holds no lock')
    kept.events.push(event)
    if (isLast(event)) kept.runId = null
    for (const listener of this.#listeners.get(id) ?? []) listener(event)
  }

  /** All events of a thread, for any caller: the platform's inspection takes no user. */
  events(id: string): readonly PlatformEvent[] {
    const kept = this.#threads.get(id)
    if (kept === undefined) throw new PlatformRefusal(404, 'no such thread')
    return kept.events
  }

  /** Hears what happens in a thread from now on, until the function that is given back is called. */
  listen(id: string, listener: Listener): () => void {
    const all = this.#listeners.get(id) ?? new Set()
    this.#listeners.set(id, all.add(listener))
    return () => all.delete(listener)
  }

  /** One page of a user's threads with an agent, the newest first. */
  page(userId: string, agentId: string, query: { readonly archived: boolean; readonly limit: number; readonly from: number }) {
    const all = [...this.#threads.values()]
      .map(({ thread }) => thread)
      .filter((one) => one.createdById === userId && one.agentId === agentId && (query.archived || !one.archived))
      .toReversed()
    const end = query.from + query.limit
    return { threads: all.slice(query.from, end), next: end < all.length ? end : null }
  }

  /** A token that opens one socket, for one topic. */
  joinToken(topic: string): string {
    const token = this.#secret('join-token')
    this.#topics.set(token, topic)
    return token
  }

  /** The topic of a token, which is worth nothing from then on; undefined for one that is none. */
  redeem(token: string): string | undefined {
    const topic = this.#topics.get(token)
    this.#topics.delete(token)
    return topic
  }

  /** The code in the topic of a user's own channel. */
  joinCode(userId: string): string {
    const code = this.#codes.get(userId) ?? this.#secret('join-code')
    this.#codes.set(userId, code)
    return code
  }

  #secret(kind: string): string {
    const secret = `${kind}-${randomBytes(12).toString('hex')}`
    this.secrets.push(secret)
    return secret
  }
}

/** The messages of a thread: what users brought along, and what agents said. */
export function messagesOf(events: readonly PlatformEvent[]): readonly object[] {
  const messages = new Map<unknown, { id: unknown; role: unknown; content: unknown }>()
  for (const event of events) {
    const { type, messageId, role, delta, input } = event as Record<string, unknown>
    if (type === 'RUN_STARTED') {
      const { messages: brought = [] } = (input ?? {}) as { messages?: { id: string; role: string; content: unknown }[] }
      for (const { id, role: whose, content } of brought) messages.set(id, { id, role: whose, content })
    }
    if (type === 'TEXT_MESSAGE_START') messages.set(messageId, { id: messageId, role, content: '' })
    const message = messages.get(messageId)
    if (type === 'TEXT_MESSAGE_CONTENT' && message !== undefined) message.content = `${String(message.content)}${String(delta)}`
  }
  return [...messages.values()]
}

/** The state that the last run began with. The platform's has in it what agents changed, too. */
export function stateOf(events: readonly PlatformEvent[]): unknown {
  const started = events.findLast(({ type }) => type === 'RUN_STARTED')
  return (started?.['input'] as { state?: unknown } | undefined)?.state
}
