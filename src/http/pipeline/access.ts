/**
 * Checks whether what was permitted is still allowed. Rules, ownership and credentials change while a request is under way.
 * The gateway checks a permit against them before the answer begins and for as long as the answer is open.
 */
import type { Permit } from '../../core/decide/decide.ts'
import type { Refusal } from '../../core/reasons.ts'
import type { AnswerOwner } from '../upstream/open-answers.ts'

export type Mark = number

export interface Access {
  mark(): Mark
  changedSince(mark: Mark, threadIds: readonly string[]): boolean
  isReplaced(): boolean
  /**
   * Why what was permitted at a moment is no longer allowed, by the current ownership and configuration.
   * @returns null if it is allowed; at once where nothing has changed since
   */
  refusal(permit: Permit, permittedAt: Mark): Promise<Refusal | null> | null
  /**
   * The listed threads that the permit's caller may no longer read.
   * @returns null for none; at once where nothing has changed since
   */
  hidden(permit: Permit, threadIds: readonly string[], listedAt: Mark): Promise<ReadonlySet<string>> | null
  /** Called for each answer that stays open: the gateway checks it again whenever something changes. */
  opened(owner: AnswerOwner, permittedAt: Mark): void
}

/** The most checks of a list whose threads change meanwhile. */
const MOST_READINGS = 3

/**
 * The threads that the caller may still read when the list is written: fetching the upstream's pages may have taken long.
 * @returns null where they changed at each check
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
