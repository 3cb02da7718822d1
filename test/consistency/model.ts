/**
 * Who owns what, as design.md tells it and in as few words as possible: the gateway is held against this, step by step.
 * One request after the other; `unknownThread` is `claim`.
 */
import { isThreadId } from '../../src/core/route/ids.ts'

/** A caller. */
export interface User {
  readonly name: 'alice' | 'bob' | 'olga' | 'anonymous'
  /** Undefined for the caller without a credential. */
  readonly token?: string
}

/** Routes that need a thread of one's own. */
export const OWNER_ROUTES = ['messages', 'events', 'state', 'stop', 'update', 'delete', 'archive', 'annotate'] as const
/** Routes that may begin a chat, too. */
export const CHAT_ROUTES = ['run', 'connect', 'suggest'] as const
/** The routes about one thread. */
export type ThreadRoute = (typeof OWNER_ROUTES)[number] | (typeof CHAT_ROUTES)[number]

const OPERATOR = 'olga'

/** The model. */
export class Model {
  readonly #rows = new Map<string, { readonly owner: string; deleted: boolean; readonly confirmed: boolean }>()
  /** True where the policy opens the owner's routes on foreign threads to operators. */
  readonly #auditing: boolean

  constructor(auditing: boolean) {
    this.#auditing = auditing
  }

  /** True if the gateway permits it. */
  may(user: string, route: ThreadRoute, threadId: string): boolean {
    if (user === 'anonymous' || !isThreadId(threadId)) return false
    const row = this.#rows.get(threadId)
    const mine = row?.owner === user
    if ((CHAT_ROUTES as readonly string[]).includes(route)) return row === undefined || mine
    if (row === undefined || row.deleted || (route !== 'stop' && !row.confirmed)) return false
    return mine || (this.#auditing && user === OPERATOR)
  }

  /** True if it is sent on: the gateway itself answers a connect that would create a thread. */
  mayArrive(user: string, route: ThreadRoute, threadId: string): boolean {
    return this.may(user, route, threadId) && (route !== 'connect' || this.#rows.get(threadId)?.deleted === false)
  }

  mayClear(user: string): boolean {
    return user === OPERATOR
  }

  /**
   * A run that was permitted, and what the upstream answered: a 4xx started nothing, unless somebody gave up waiting, and what
   * is no 2xx does not say that the thread is the user's, unless it was before.
   */
  ran(user: string, threadId: string, status: number): void {
    const notStarted = status >= 400 && status < 500 && status !== 408
    const confirmed = status === 200 || this.#rows.get(threadId)?.confirmed === true
    if (!notStarted) this.#rows.set(threadId, { owner: user, deleted: false, confirmed })
  }

  /** The upstream confirmed a DELETE. */
  deleted(threadId: string): void {
    this.#rows.get(threadId)!.deleted = true
  }

  /** For messages: the owner's name, in brackets for a tombstone, with a question mark before a run is confirmed. */
  tell(threadId: string): string {
    const row = this.#rows.get(threadId)
    return row === undefined ? 'nobody' : row.deleted ? `(${row.owner})` : row.confirmed ? row.owner : `${row.owner}?`
  }
}
