/** Checks open answers again when access may have changed, and ends those no longer allowed. Repeats checks that fail. */
import type { AnswerOwner, OpenAnswers } from '../http/upstream/open-answers.ts'
import type { Logger } from '../observe/log.ts'
import type { AccessInvalidations } from '../store/port/access.ts'
import type { Mark } from '../http/pipeline/stages.ts'

export interface AnswerRecheckParts {
  readonly invalidations: AccessInvalidations
  readonly answers: Pick<OpenAnswers, 'owners' | 'endOf'>
  /** `for-now`: allowed, but no invalidation would report its end. Rejects if that cannot be known. */
  readonly allows: (owner: AnswerOwner) => Promise<boolean | 'for-now'>
  readonly log: Logger
}

export interface AnswerRecheck {
  /** Now. */
  readonly mark: Mark
  readonly changedSince: (mark: Mark, threadIds: readonly string[]) => boolean
  readonly opened: (owner: AnswerOwner, permittedAt: Mark) => void
  readonly check: (owners: Iterable<AnswerOwner>) => Promise<void>
  readonly stop: () => void
}

/** Most simultaneous checks: a store has few connections. */
const AT_ONCE = 32
/** In milliseconds. No invalidation reports the claim of a thread without a settled owner. */
const AGAIN_MS = 500

/** Most changes that are remembered by thread; for an older mark, any thread may have changed. */
const REMEMBERED = 1024

export function makeAnswerRecheck({ invalidations, answers, allows, log }: AnswerRecheckParts): AnswerRecheck {
  /** The threads of the last changes, by number; null where any thread may have changed. */
  const changed: (string | null)[] = []
  let stopped = false
  const due = new Set<AnswerOwner>()
  let working: Promise<void> | null = null

  const unsettled = new Set<AnswerOwner>()
  let checking: NodeJS.Timeout | undefined
  const checkAgain = (): void => {
    const open = new Set(answers.owners())
    for (const owner of unsettled) if (!open.has(owner)) unsettled.delete(owner)
    if (unsettled.size > 0) return void check(unsettled)
    clearInterval(checking)
    checking = undefined
  }
  const keepChecking = (owner: AnswerOwner): void => {
    if (stopped) return
    unsettled.add(owner)
    checking ??= setInterval(checkAgain, AGAIN_MS).unref()
  }

  /** @returns false if the answer has to end */
  const ask = async (owner: AnswerOwner): Promise<boolean> => {
    try {
      const allowed = await allows(owner)
      if (allowed === 'for-now') keepChecking(owner)
      else unsettled.delete(owner)
      return allowed !== false
    } catch (error) {
      log.error(
        { err: error },
        'the access of an open stream could not be checked again: the gateway retries when the store is available',
      )
      keepChecking(owner)
      return true
    }
  }

  const takeSome = (): readonly AnswerOwner[] => {
    const some: AnswerOwner[] = []
    for (const owner of due) {
      // A change from here on causes another check.
      due.delete(owner)
      some.push(owner)
      if (some.length === AT_ONCE) break
    }
    return some
  }

  const work = async (): Promise<void> => {
    while (due.size > 0 && !stopped) {
      const some = takeSome()
      const goOn = await Promise.all(some.map(ask))
      const ending = some.filter((_owner, at) => goOn[at] === false)
      if (ending.length > 0) answers.endOf(new Set(ending))
    }
    working = null
  }

  const check = (owners: Iterable<AnswerOwner>): Promise<void> => {
    for (const owner of owners) due.add(owner)
    if (due.size === 0 || stopped) return Promise.resolve()
    return (working ??= work())
  }

  const end = invalidations.onInvalidation((key) => {
    changed[recheck.mark % REMEMBERED] = key?.threadId ?? null
    recheck.mark += 1
    const isConcerned = (threadIds: readonly string[]): boolean =>
      threadIds.length > 0 && (key === null || threadIds.includes(key.threadId))
    void check(answers.owners().filter((owner) => isConcerned(threadsOf(owner))))
  })

  const changedSince: AnswerRecheck['changedSince'] = (mark, threadIds) => {
    if (mark === recheck.mark) return false
    if (recheck.mark - mark > REMEMBERED) return true
    const asked = new Set<string | null>(threadIds).add(null)
    for (let number = mark; number < recheck.mark; number += 1) if (asked.has(changed[number % REMEMBERED] ?? null)) return true
    return false
  }

  const recheck = {
    mark: 0,
    changedSince,
    opened(owner: AnswerOwner, permittedAt: Mark): void {
      const threadIds = threadsOf(owner)
      if (threadIds.length > 0 && changedSince(permittedAt, threadIds)) void check([owner])
      if (owner.permit?.isUnsettled === true) keepChecking(owner)
    },
    check,
    stop() {
      stopped = true
      clearInterval(checking)
      end()
    },
  }
  return recheck
}

function threadsOf({ permit, tellsOf = [] }: AnswerOwner): readonly string[] {
  const threadId = permit?.descriptor.ids.threadId
  return threadId === undefined ? tellsOf : [threadId, ...tellsOf]
}
