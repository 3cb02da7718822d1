/** Traces of requests. The library that makes and sends them is loaded only where an operator configured it (load-tracing.ts). */
import type { HeaderLines } from '../core/wire/headers.ts'

/** The parts of a request that are measured by themselves. */
export type TracedPart = 'authenticate' | 'decide' | 'store' | 'claim' | 'upstream'

export interface Tracing {
  /** @param caller an untrusted one's own trace is not continued: it would choose the ids and what is sampled */
  begin(lines: HeaderLines, caller: 'trusted' | 'untrusted'): RequestTrace
  /** Sends the last spans, for at most some seconds. Rejects never. */
  stop(): Promise<void>
}

export interface RequestTrace {
  readonly traceId: string
  /** A part that begins within another one belongs to it. */
  begin(part: TracedPart): PartTrace
  /** Ends the request, and what is still open of it. */
  end(line: TracedLine, scheme: 'http' | 'https'): void
}

export interface PartTrace {
  /** Writes the headers that make the upstream's work a part of this one, in place of the caller's. */
  inject(headers: Record<string, string>): void
  /** Once: later calls do nothing. */
  end(result?: PartResult): void
}

/** `status` is that of the upstream's answer; `fault` says why there was none. */
export interface PartResult {
  readonly status?: number
  readonly fault?: string
}

/** Of the line that the log has of the request. */
export interface TracedLine {
  readonly method: string
  readonly route: string
  readonly upstream: string | undefined
  /** Undefined for an answer that never began. */
  readonly status: number | undefined
  readonly reason: string | undefined
  readonly complete: boolean
  readonly thread: string | undefined
  readonly principal: string | undefined
}

export interface TraceParent {
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
}

/** W3C Trace Context, §3.2.2 and §4.3. Null for anything else than one valid value. */
export function traceParentOf(lines: HeaderLines): TraceParent | null {
  const values = lines.get('traceparent')
  if (values?.length !== 1) return null
  const [, version = '', traceId = '', spanId = '', flags = '', rest = ''] =
    /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/.exec(values[0] ?? '') ?? []
  if (version === '' || version === 'ff' || (version === '00' && rest !== '')) return null
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}
