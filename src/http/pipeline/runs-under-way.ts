/**
 * The runs, suggestions and annotations that this process has sent and that may still be executing.
 * Such a run may write to its thread after the thread's deletion.
 * So may a run whose end the gateway did not see: a caller who leaves does not stop a run.
 */
import { LONGEST_RUN } from '../../store/port/claims.ts'
import type { ThreadKey } from '../../store/port/thread.ts'

/** @param isOver true where the run is certainly no longer executing, or never was */
export type EndRun = (isOver: boolean) => void

export interface Deletion {
  readonly token: string
  /** True if, as far as this process knows, the upstream holds nothing of the thread once it confirms the deletion. */
  readonly isUndisturbed: boolean
}

export interface RunsUnderWay {
  /** Called before the run is claimed. */
  begin(key: ThreadKey): EndRun
  mayBeExecuting(key: ThreadKey): boolean
}

interface Noted {
  open: number
  /** Milliseconds since the epoch: the start of the last run whose end the gateway did not see. */
  lostAt: number
}

/** Beyond it, every thread counts as having such a run for as long as a run may last. */
const MOST_LOST = 100_000

/** @param clock milliseconds since the epoch */
export function makeRunsUnderWay(clock: () => number): RunsUnderWay {
  const noted = new Map<string, Noted>()
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

function nameOf({ scope, threadId }: ThreadKey): string {
  return `${scope}/${threadId}`
}
