/** The stream of decisions: a line each, to a file, beside the log on stdout, or nowhere. What gets lost is counted and said. */
import type { AuditLine } from './line.ts'
import { destinationOf, type Logger } from '../observe/log.ts'
import { makeOutage, type LineSink, type Outage, type OutageParts } from './outage.ts'
import type { AuditFileRules } from './rolling-file.ts'

export interface AuditRules extends AuditFileRules {
  readonly to: 'off' | 'stdout' | 'file'
}

export interface Audit {
  /** False where nobody reads lines, and none has to be made. */
  readonly isOn: boolean
  /** Takes a line. It never fails, and never waits. */
  write(line: AuditLine): void
  /** Writes what is left, and closes. */
  stop(): Promise<void>
}

export interface AuditSink extends LineSink {
  /** Told of lines that were lost on their way here. */
  lost(lines: number): void
}

/**
 * Opens the stream.
 * @throws Error that names the path and what to do, if the file can't be written
 */
export async function openAudit(rules: AuditRules, parts: OutageParts): Promise<Audit> {
  const sink = await openAuditSink(rules, parts)
  if (sink === null) return { isOn: false, write: () => {}, stop: () => Promise.resolve() }
  return { isOn: true, write: (line) => sink.write(`${JSON.stringify(line)}\n`), stop: () => sink.stop() }
}

/**
 * Opens the stream for lines that were written elsewhere; null where nobody reads any.
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

/** What writes files takes its time to load: nobody waits for it who has none. */
async function inFiles(rules: AuditFileRules, outage: Outage, written: (lines: number) => void): Promise<LineSink> {
  const { openAuditFile } = await import('./file.ts')
  return openAuditFile(rules, outage, written)
}

/** By the stream of the log itself: two streams to one pipe would cut into each other's lines. */
function besideTheLog(log: Logger, outage: Outage, written: (lines: number) => void): LineSink {
  const stream = destinationOf(log)
  let closed = false
  stream.on?.('error', (error: Error & { readonly code?: string }) => {
    // Nobody reads any more, and the stream of the log gives up for good.
    if (error.code === 'EPIPE') closed = true
    outage.began(error.code ?? error.message)
  })
  // More than it may hold, of a disk that stays full.
  stream.on?.('drop', (lines: unknown) => {
    const lost = String(lines)
      .split('\n')
      .filter((line) => line.startsWith('{"audit":1'))
    if (lost.length > 0) outage.lost(lost.length)
  })
  // Any other failure it tries again, with what it held.
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
