/**
 * Whether what was permitted is still allowed. Rules, ownership and credentials change while a request is under way, and what
 * it was permitted is checked against them before its answer begins and for as long as the answer is open.
 */
import type { Permit } from '../../core/decide/decide.ts'
import type { Refusal } from '../../core/reasons.ts'
import type { AnswerOwner } from '../upstream/open-answers.ts'

/** A moment, to ask later what has changed since. */
export type Mark = number

/** The access that one configuration gives to one of its upstreams. */
export interface Access {
  mark(): Mark
  /** True if something may have changed since a moment of who may use one of these threads. */
  changedSince(mark: Mark, threadIds: readonly string[]): boolean
  /** True once another configuration is active. */
  isReplaced(): boolean
  /**
   * Why what was permitted at a moment is not allowed any more, by the ownership and the configuration of now.
   * @returns null if it is allowed; at once where nothing has changed since
   */
  refusal(permit: Permit, permittedAt: Mark): Promise<Refusal | null> | null
  /**
   * Of threads that were listed for a permit, those that its caller may not read any more.
   * @returns null for none; at once where nothing has changed since
   */
  hidden(permit: Permit, threadIds: readonly string[], listedAt: Mark): Promise<ReadonlySet<string>> | null
  /** Told of each answer that stays open: it is checked again whenever something changes. */
  opened(owner: AnswerOwner, permittedAt: Mark): void
}

/** How often a list is read again whose threads change while it is read. */
const MOST_READINGS = 3

/**
 * The threads of a list that its caller may still read when the list is written: fetching the pages of an upstream may have
 * taken long.
 * @param idOf the id of a thread
 * @returns null where they changed each time that they were looked at
 */
export async function stillListed<Thread>(
  access: Access,
  permit: Permit,
  threads: readonly Thread[],
  idOf: (thread: Thread) => string,
  listedAt: Mark,
): Promise<readonly Thread[] | null> {
  let left = threads
  let at = listedAt
  for (let reading = 0; reading < MOST_READINGS; reading += 1) {
    const ids = left.map(idOf)
    const asked = access.mark()
    const hidden = access.hidden(permit, ids, at)
    if (hidden === null) return left
    const gone = await hidden
    left = left.filter((thread) => !gone.has(idOf(thread)))
    at = asked
  }
  return null
}
