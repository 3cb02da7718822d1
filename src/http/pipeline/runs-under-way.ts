/**
 * The runs, suggestions and annotations that this process has sent and that may still be executing. What is executing when its
 * thread is deleted may write to it afterwards, and so may a run whose end nobody saw: a caller who leaves does not stop a run.
 */
import { LONGEST_RUN, type ThreadKey } from '../../store/port.ts'

/** Ends a run that was begun. @param isOver true where it certainly executes no more, or never did */
export type EndRun = (isOver: boolean) => void

/** A deletion of a thread that was begun in the ownership table. */
export interface Deletion {
  readonly token: string
  /** True if the upstream holds nothing of the thread once it confirms the deletion, as far as this process knows. */
  readonly isUndisturbed: boolean
}

export interface RunsUnderWay {
  /** Notes a run, before it is claimed. */
  begin(key: ThreadKey): EndRun
  /** True if a run on a thread may be executing. */
  mayBeExecuting(key: ThreadKey): boolean
}

interface Noted {
  open: number
  /** When the last run began whose end nobody saw, in milliseconds since the epoch. */
  lostAt: number
}

/** So many threads are remembered for runs whose end nobody saw; beyond it, every thread may have one for as long. */
const MOST_LOST = 100_000

/**
 * Makes the register.
 * @param clock milliseconds since the epoch
 */
export function makeRunsUnderWay(clock: () => number): RunsUnderWay {
  const noted = new Map<string, Noted>()
  /** When a run was last forgotten for want of room. */
  let forgotAt = -Infinity
  let sweptAt = clock()

  const sweep = (now: number): void => {
    if (noted.size <= MOST_LOST && now - sweptAt < LONGEST_RUN) return
    sweptAt = now
    for (const [name, { open, lostAt }] of noted) {
      if (open > 0) continue
      if (now - lostAt < LONGEST_RUN) {
        if (noted.size <= MOST_LOST) continue
        forgotAt = now
      }
      noted.delete(name)
    }
  }

  return {
    begin(key) {
      const name = nameOf(key)
      const begunAt = clock()
      let one = noted.get(name)
      if (one === undefined) noted.set(name, (one = { open: 0, lostAt: -Infinity }))
      one.open += 1
      let ended = false
      return (isOver) => {
        if (ended) return
        ended = true
        one.open -= 1
        if (!isOver) one.lostAt = Math.max(one.lostAt, begunAt)
        if (one.open === 0 && one.lostAt === -Infinity) noted.delete(name)
        else if (!isOver) sweep(clock())
      }
    },
    mayBeExecuting(key) {
      const now = clock()
      const one = noted.get(nameOf(key))
      return now - forgotAt < LONGEST_RUN || (one !== undefined && (one.open > 0 || now - one.lostAt < LONGEST_RUN))
    },
  }
}

/** A name that no two threads share. */
function nameOf({ scope, threadId }: ThreadKey): string {
  return `${scope}/${threadId}`
}
