/**
 * Opens the stream of decisions: one line each, to a file, beside the log on stdout, or nowhere. Lost lines are counted and
 * reported.
 */
import type { AuditLine } from './line.ts'
import { destinationOf, type Logger } from '../observe/log.ts'
import { makeOutage, type LineSink, type Outage, type OutageParts } from './outage.ts'
import type { AuditFileRules } from './rolling-file.ts'

export interface AuditRules extends AuditFileRules {
  readonly to: 'off' | 'stdout' | 'file'
}

export interface Audit {
  readonly isOn: boolean
  /** Takes a line. It never fails, and never waits. */
  write(line: AuditLine): void
  stop(): Promise<void>
}

export interface AuditSink extends LineSink {
  lost(lines: number): void
}

/** @throws Error that names the path and what to do, if the file can't be written */
export async function openAudit(rules: AuditRules, parts: OutageParts): Promise<Audit> {
  const sink = await openAuditSink(rules, parts)
  if (sink === null) return { isOn: false, write: () => {}, stop: () => Promise.resolve() }
  return { isOn: true, write: (line) => sink.write(`${JSON.stringify(line)}\n`), stop: () => sink.stop() }
}

/**
 * Opens the stream for lines that were written elsewhere; null where lines go nowhere.
 * @throws as openAudit
 */
export async function openAuditSink(rules: AuditRules, parts: OutageParts): Promise<AuditSink | null> {
  if (rules.to === 'off') return null
  const outage = makeOutage(parts)
  const written = (lines: number): void => parts.metrics.auditWritten(lines)
  const sink = rules.to === 'file' ? await inFiles(rules, outage, written) : besideTheLog(parts.log, outage, written)
  return {
    ...sink,
    lost: (lines) => {
      outage.began('too many lines wait')
      outage.lost(lines)
    },
  }
}

/** The file writer takes long to load: gateways without audit files do not load it. */
async function inFiles(rules: AuditFileRules, outage: Outage, written: (lines: number) => void): Promise<LineSink> {
  const { openAuditFile } = await import('./file.ts')
  return openAuditFile(rules, outage, written)
}

/** Uses the stream of the log itself: two streams to one pipe would cut into each other's lines. */
function besideTheLog(log: Logger, outage: Outage, written: (lines: number) => void): LineSink {
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
        written(1)
      }
    },
    stop: () => Promise.resolve(),
  }
}
