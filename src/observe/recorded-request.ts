/**
 * The spans of a sampled request. Until their export they are few objects without times and lists of OpenTelemetry: spans wait
 * for seconds, and what lives so long costs the garbage collector more than the request.
 */
import {
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Attributes,
  type HrTime,
  type Link,
  type SpanContext,
  type SpanStatus,
} from '@opentelemetry/api'
import { hrTimeDuration, millisToHrTime, type InstrumentationScope } from '@opentelemetry/core'
import type { Resource } from '@opentelemetry/resources'
import type { IdGenerator, ReadableSpan, SpanProcessor, TimedEvent } from '@opentelemetry/sdk-trace'
import type { PartResult, PartTrace, RequestTrace, TracedLine, TracedPart } from './traces.ts'

/** What the spans of all requests share. */
export interface SpanSource {
  readonly resource: Resource
  readonly scope: InstrumentationScope
  readonly ids: IdGenerator
  readonly processor: SpanProcessor
  /** Whether spans name the thread and the user. */
  readonly tellsIds: boolean
}

export class RecordedRequest implements RequestTrace {
  readonly traceId: string
  readonly source: SpanSource
  /** Milliseconds from the monotonic clock to the time of day: a clock that is set meanwhile changes no duration. */
  readonly offset = Date.now() - performance.now()
  readonly #root: RecordedSpan
  #innermost: RecordedSpan

  /** @param parent the span of a trusted caller */
  constructor(source: SpanSource, context: SpanContext, parent: SpanContext | undefined) {
    this.traceId = context.traceId
    this.source = source
    this.#root = new RecordedSpan(this, context, SpanKind.SERVER, 'request', parent, null)
    this.#innermost = this.#root
  }

  begin(part: TracedPart): PartTrace {
    const outer = this.#innermost
    const kind = part === 'upstream' ? SpanKind.CLIENT : SpanKind.INTERNAL
    const context = { ...outer.context, spanId: this.source.ids.generateSpanId() }
    return (this.#innermost = new RecordedSpan(this, context, kind, part, outer.context, outer))
  }

  end({ method, route, upstream, status, reason, complete, thread, principal }: TracedLine, scheme: 'http' | 'https'): void {
    const root = this.#root
    root.name = route === 'none' ? method : `${method} ${route}`
    const { tellsIds } = this.source
    const attributes: Attributes = {
      'http.request.method': method,
      'http.route': route,
      'url.scheme': scheme,
      'threadwarden.complete': complete,
    }
    if (reason !== undefined) attributes['threadwarden.reason'] = reason
    if (upstream !== undefined) attributes['threadwarden.upstream'] = upstream
    if (status !== undefined) attributes['http.response.status_code'] = status
    if (tellsIds && thread !== undefined) attributes['threadwarden.thread.id'] = thread
    if (tellsIds && principal !== undefined) attributes['user.id'] = principal
    root.attributes = attributes
    // The innermost first. A part that is open by now has failed.
    while (this.#innermost !== this.#root) this.#innermost.end({ fault: 'unfinished' })
    root.endWith(status !== undefined && status >= 500 ? String(status) : undefined)
  }

  /** The parts that begin now belong to the innermost one that is open. */
  ended(): void {
    while (this.#innermost.ended && this.#innermost.outer !== null) this.#innermost = this.#innermost.outer
  }
}

/** W3C Trace Context, in place of what the caller sent. */
export function writeTraceHeaders(
  headers: Record<string, string>,
  { traceId, spanId, traceFlags, traceState }: SpanContext,
): void {
  headers['traceparent'] = `00-${traceId}-${spanId}-0${traceFlags & TraceFlags.SAMPLED}`
  const state = traceState?.serialize() ?? ''
  if (state !== '') headers['tracestate'] = state
  else if ('tracestate' in headers) delete headers['tracestate']
}

const NO_ATTRIBUTES: Attributes = {}
const NO_LINKS: Link[] = []
const NO_EVENTS: TimedEvent[] = []

/** The exporter reads the getters, once. */
class RecordedSpan implements ReadableSpan, PartTrace {
  readonly context: SpanContext
  readonly kind: SpanKind
  readonly outer: RecordedSpan | null
  name: string
  readonly parentSpanContext?: SpanContext
  attributes = NO_ATTRIBUTES
  readonly #request: RecordedRequest
  readonly #began = performance.now()
  #ended = 0
  #error: string | undefined

  /** @param parent that of `outer`, or the span of a trusted caller */
  constructor(
    request: RecordedRequest,
    context: SpanContext,
    kind: SpanKind,
    name: string,
    parent: SpanContext | undefined,
    outer: RecordedSpan | null,
  ) {
    this.#request = request
    this.context = context
    this.kind = kind
    this.name = name
    this.outer = outer
    if (parent !== undefined) this.parentSpanContext = parent
  }

  inject(headers: Record<string, string>): void {
    writeTraceHeaders(headers, this.context)
  }

  end({ status, fault }: PartResult = {}): void {
    if (this.ended) return
    if (status !== undefined) this.attributes = { 'http.response.status_code': status }
    this.endWith(fault ?? (status !== undefined && status >= 400 ? String(status) : undefined))
    this.#request.ended()
  }

  endWith(error: string | undefined): void {
    this.#ended = performance.now()
    this.#error = error
    if (error !== undefined) this.attributes = { ...this.attributes, 'error.type': error }
    this.#request.source.processor.onEnd(this)
  }

  spanContext(): SpanContext {
    return this.context
  }

  get startTime(): HrTime {
    return millisToHrTime(this.#request.offset + this.#began)
  }

  get endTime(): HrTime {
    return millisToHrTime(this.#request.offset + this.#ended)
  }

  get duration(): HrTime {
    return hrTimeDuration(this.startTime, this.endTime)
  }

  get ended(): boolean {
    return this.#ended > 0
  }

  get status(): SpanStatus {
    return { code: this.#error === undefined ? SpanStatusCode.UNSET : SpanStatusCode.ERROR }
  }

  get resource(): Resource {
    return this.#request.source.resource
  }

  get instrumentationScope(): InstrumentationScope {
    return this.#request.source.scope
  }

  get links(): Link[] {
    return NO_LINKS
  }

  get events(): TimedEvent[] {
    return NO_EVENTS
  }

  get droppedAttributesCount(): number {
    return 0
  }

  get droppedEventsCount(): number {
    return 0
  }

  get droppedLinksCount(): number {
    return 0
  }
}
