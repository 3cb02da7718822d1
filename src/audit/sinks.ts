/** Opens the stream of decisions: to a file, beside the log on stdout, or nowhere. Counts and reports lost lines. */
import { destinationOf, type Logger } from '../observe/log.ts'
import { makeOutage, type LineSink, type Outage, type OutageParts } from './outage.ts'
import { openAuditFile } from './file.ts'

export interface AuditRules {
  readonly to: 'off' | 'stdout' | 'file'
  readonly file: string
}

export interface Audit {
  readonly isOn: boolean
  /** Takes a line with its end. It never fails, and never waits. */
  write(line: string): void
  reopen(): void
  stop(): Promise<void>
}

export const NO_AUDIT: Audit = { isOn: false, write: () => {}, reopen: () => {}, stop: () => Promise.resolve() }

/** @throws Error that names the path and what to do, if the file can't be written */
export function openAudit(rules: AuditRules, parts: OutageParts): Audit {
  const sink = openAuditSink(rules, parts)
  return sink === null ? NO_AUDIT : { ...sink, isOn: true }
}

/** For lines that were written elsewhere; null where lines go nowhere. @throws as openAudit */
export function openAuditSink({ to, file }: AuditRules, parts: OutageParts): (LineSink & { lost(lines: number): void }) | null {
  if (to === 'off') return null
  const { log, metrics } = parts
  const outage = makeOutage(parts)
  const onWritten = (lines: number): void => metrics.auditWritten(lines)
  const sink = to === 'file' ? openAuditFile(file, { outage, log, onWritten }) : besideTheLog(log, outage, onWritten)
  return {
    ...sink,
    lost: (lines) => {
      outage.began('too many lines wait')
      outage.lost(lines)
    },
  }
}

/** Uses the stream of the log itself: two streams to one pipe would cut into each other's lines. */
function besideTheLog(log: Logger, outage: Outage, onWritten: (lines: number) => void): LineSink {
  const stream = destinationOf(log)
  let closed = false
  stream.on?.('error', (error: Error & { readonly code?: string }) => {
    // The reader is gone, and the stream of the log fails for good.
    if (error.code === 'EPIPE') closed = true
    outage.began(error.code ?? error.message)
  })
  // Lines beyond the stream's capacity, on a disk that stays full.
  stream.on?.('drop', (lines: unknown) => {
    const lost = String(lines)
      .split('\n')
      .filter((line) => line.startsWith('{"audit":1'))
    if (lost.length > 0) outage.lost(lost.length)
  })
  // The stream retries after every other failure, with what it held.
  stream.on?.('write', () => {
    if (!closed) outage.over()
  })
  return {
    write(line) {
      if (closed) outage.lost(1)
      else {
        stream.write(line)
        onWritten(1)
      }
    },
    reopen() {},
    stop: () => Promise.resolve(),
  }
}
