/** Reports audit outages: lost lines must never go unnoticed. */
import type { Logger } from '../observe/log.ts'
import type { AuditMetrics } from '../observe/metrics.ts'

/** Takes lines, each with its line end. It never fails, and never waits. */
export interface LineSink {
  write(line: string): void
  /** For log rotation: further lines go to the file that has the configured name now. */
  reopen(): void
  stop(): Promise<void>
}

export interface OutageParts {
  readonly log: Logger
  readonly metrics: AuditMetrics
  /** Shows a note to operators; null removes it. */
  readonly note: (text: string | null) => void
}

/** An outage is reported once when it begins, and once when it ends. */
export interface Outage {
  /** @param detail an error code or description; never a line */
  began(detail: string): void
  over(): void
  lost(lines: number): void
  /** Reports lines that are lost because the process ends. */
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
      log.error({ detail }, 'audit lines cannot be written: they are kept in memory up to 8 MiB, then lost')
      note(`audit lines cannot be written (${detail}): they are kept in memory up to 8 MiB, then lost`)
    },
    over() {
      if (!isOn) return
      isOn = false
      log.warn({ lost }, 'audit lines are written again')
      note(null)
    },
    lost: lose,
    ended(lines) {
      lose(lines)
      log.error({ lost }, 'audit lines were lost: the gateway stopped before it could write them')
    },
  }
}
