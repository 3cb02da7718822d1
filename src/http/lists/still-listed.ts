/** Checks a list again before it is written: access may have changed while it was fetched. */
import type { Permit } from '../../core/decide/decide.ts'
import type { AccessChanges, Mark } from '../pipeline/stages.ts'

const MOST_READINGS = 3

/** Fetching the upstream's pages may have taken long. @returns null where the threads changed at each check */
export async function stillListed<Thread>(
  access: AccessChanges,
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
