/** What happens to lines that nobody may lose unseen: where they go, and what is said when they can't. */
import type { Logger } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'

/** Takes lines, each with its end. It never fails, and never waits. */
export interface LineSink {
  write(line: string): void
  /** Writes what is left, and closes. */
  stop(): Promise<void>
}

/** Whom an outage is told to. */
export interface OutageParts {
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'auditWritten' | 'auditLost'>
  /** Puts a note before operators, or with null takes it back. */
  readonly note: (text: string | null) => void
}

/** An outage is said once when it begins, and once when it is over. */
export interface Outage {
  /** @param detail what is wrong: an error code, or words; never a line */
  began(detail: string): void
  over(): void
  /** So many lines are gone for good. */
  lost(lines: number): void
  /** So many are gone because the process ends. */
  ended(lines: number): void
}

export function makeOutage({ log, metrics, note }: OutageParts): Outage {
  let isOn = false
  let lost = 0
  const lose = (lines: number): void => {
    lost += lines
    metrics.auditLost(lines)
  }
  return {
    began(detail) {
      if (isOn) return
      isOn = true
      lost = 0
      log.error({ detail }, 'the audit lines cannot be written: THE RECORD OF DECISIONS HAS A GAP if this goes on')
      note(`the audit lines cannot be written (${detail}): they wait in memory as far as there is room, and are lost beyond it`)
    },
    over() {
      if (!isOn) return
      isOn = false
      log.warn({ lost }, 'the audit lines are written again')
      note(null)
    },
    lost: lose,
    ended(lines) {
      lose(lines)
      log.error({ lost }, 'audit lines are lost: the gateway stopped before they could be written')
    },
  }
}
