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
import type { PartTrace, RequestTrace, TracedLine, TracedPart } from './traces.ts'

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
  readonly #open: RecordedSpan[]

  /** @param parent the span of a trusted caller */
  constructor(source: SpanSource, context: SpanContext, parent: SpanContext | undefined) {
    this.traceId = context.traceId
    this.source = source
    this.#root = new RecordedSpan(this, context, SpanKind.SERVER, 'request', parent)
    this.#open = [this.#root]
  }

  begin(part: TracedPart): PartTrace {
    const parent = (this.#open.at(-1) ?? this.#root).context
    const kind = part === 'upstream' ? SpanKind.CLIENT : SpanKind.INTERNAL
    const span = new RecordedSpan(this, { ...parent, spanId: this.source.ids.generateSpanId() }, kind, part, parent)
    this.#open.push(span)
    return {
      inject: (headers) => writeTraceHeaders(headers, span.context),
      end: ({ status, fault } = {}) => {
        const at = this.#open.lastIndexOf(span)
        if (at === -1) return
        this.#open.splice(at, 1)
        if (status !== undefined) span.attributes = { 'http.response.status_code': status }
        this.#end(span, fault ?? (status !== undefined && status >= 400 ? String(status) : undefined))
      },
    }
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
    for (const span of this.#open.splice(1).toReversed()) this.#end(span, 'unfinished')
    this.#end(root, status !== undefined && status >= 500 ? String(status) : undefined)
  }

  #end(span: RecordedSpan, error: string | undefined): void {
    span.end(error)
    this.source.processor.onEnd(span)
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
class RecordedSpan implements ReadableSpan {
  readonly context: SpanContext
  readonly kind: SpanKind
  name: string
  readonly parentSpanContext?: SpanContext
  attributes = NO_ATTRIBUTES
  readonly #request: RecordedRequest
  readonly #began = performance.now()
  #ended = 0
  #error: string | undefined

  constructor(request: RecordedRequest, context: SpanContext, kind: SpanKind, name: string, parent: SpanContext | undefined) {
    this.#request = request
    this.context = context
    this.kind = kind
    this.name = name
    if (parent !== undefined) this.parentSpanContext = parent
  }

  end(error: string | undefined): void {
    this.#ended = performance.now()
    this.#error = error
    if (error !== undefined) this.attributes = { ...this.attributes, 'error.type': error }
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
