/**
 * Makes traces with OpenTelemetry and sends them by OTLP, as the standard environment variables say. The exporter reads those that
 * begin with OTEL_EXPORTER_OTLP by itself.
 */
import {
  diag,
  DiagLogLevel,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Attributes,
  type Context,
  type Span,
} from '@opentelemetry/api'
import { TraceState } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
} from '@opentelemetry/sdk-trace'
import type { HeaderLines } from '../core/wire/headers.ts'
import type { Logger } from './log.ts'
import { traceParentOf, type PartTrace, type RequestTrace, type Tracing } from './traces.ts'
import { packageVersion } from './version.ts'

/** Milliseconds that an export may take by default: a process that stops waits for the last one. The library's own default is 10,000. */
const EXPORT_MS = 2000

/** A receiver that is down is reported once in this time, in milliseconds. */
const REPORT_EVERY_MS = 60_000

type Warn = (variable: string, problem: string) => void

export function startTracing(env: NodeJS.ProcessEnv, log: Logger): Tracing {
  const warn: Warn = (variable, problem) => log.warn({ variable }, `tracing: ${problem}`)
  reportFailures(log)
  const protocol = env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] ?? env['OTEL_EXPORTER_OTLP_PROTOCOL'] ?? 'http/protobuf'
  if (protocol !== 'http/protobuf') warn('OTEL_EXPORTER_OTLP_PROTOCOL', 'only http/protobuf is supported, and used')
  const exporterName = env['OTEL_TRACES_EXPORTER'] ?? 'otlp'
  if (exporterName !== 'otlp') warn('OTEL_TRACES_EXPORTER', 'only otlp and none are supported: otlp is used')
  const number = numberIn(env, warn)
  const hasTimeout = 'OTEL_EXPORTER_OTLP_TIMEOUT' in env || 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT' in env
  const queue = number('OTEL_BSP_MAX_QUEUE_SIZE', 2048)
  const processor = new BatchSpanProcessor({
    exporter: new OTLPTraceExporter(hasTimeout ? {} : { timeoutMillis: EXPORT_MS }),
    scheduledDelayMillis: number('OTEL_BSP_SCHEDULE_DELAY', 5000),
    exportTimeoutMillis: number('OTEL_BSP_EXPORT_TIMEOUT', 30_000),
    maxQueueSize: queue,
    maxExportBatchSize: Math.min(number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512), queue),
  })
  const named = resourceFromAttributes({ 'service.name': 'threadwarden', 'service.version': packageVersion() })
  const provider = new TracerProvider({
    sampler: samplerOf(env, warn),
    // What the environment says wins.
    resource: defaultResource()
      .merge(named)
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    spanProcessors: [processor],
  })
  const tracer = provider.getTracer('threadwarden', packageVersion())
  const tellsIds = env['THREADWARDEN_TRACE_IDS'] === 'true'

  const begin: Tracing['begin'] = (lines, caller) => {
    const parent = caller === 'trusted' ? remoteParent(lines) : ROOT_CONTEXT
    const root = tracer.startSpan('request', { kind: SpanKind.SERVER }, parent)
    return root.isRecording() ? recorded(root, parent) : unrecorded(root)
  }

  const recorded = (root: Span, parent: Context): RequestTrace => {
    const open: Span[] = [root]
    return {
      traceId: root.spanContext().traceId,
      begin(part) {
        const kind = part === 'upstream' ? SpanKind.CLIENT : SpanKind.INTERNAL
        const span = tracer.startSpan(part, { kind }, trace.setSpan(parent, open.at(-1) ?? root))
        open.push(span)
        return {
          inject: (headers) => inject(headers, span),
          end({ status, fault } = {}) {
            const at = open.lastIndexOf(span)
            if (at === -1) return
            open.splice(at, 1)
            if (status !== undefined) span.setAttribute('http.response.status_code', status)
            const error = fault ?? (status !== undefined && status >= 400 ? String(status) : undefined)
            if (error !== undefined) fail(span, error)
            span.end()
          },
        }
      },
      end({ method, route, upstream, status, reason, complete, thread, principal }, scheme) {
        root.updateName(route === 'none' ? method : `${method} ${route}`)
        const attributes: Attributes = {
          'http.request.method': method,
          'http.route': route,
          'url.scheme': scheme,
          'threadwarden.reason': reason,
          'threadwarden.upstream': upstream,
          'http.response.status_code': status,
          'threadwarden.complete': complete,
          ...(tellsIds ? { 'threadwarden.thread.id': thread, 'user.id': principal } : {}),
        }
        root.setAttributes(attributes)
        if (status !== undefined && status >= 500) fail(root, String(status))
        // The innermost first. A part that is open by now has failed.
        while (open.length > 1) {
          const span = open.pop()
          if (span === undefined) break
          fail(span, 'unfinished')
          span.end()
        }
        root.end()
      },
    }
  }

  return {
    begin,
    async stop() {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, EXPORT_MS)))
      await Promise.race([provider.shutdown().catch(() => {}), late])
      clearTimeout(timer)
    },
  }
}

/** A request that is not sampled still tells the upstream so, and has an id for the log. */
function unrecorded(root: Span): RequestTrace {
  const part: PartTrace = { inject: (headers) => inject(headers, root), end: () => {} }
  return { traceId: root.spanContext().traceId, begin: () => part, end: () => {} }
}

function remoteParent(lines: HeaderLines): Context {
  const parent = traceParentOf(lines)
  if (parent === null) return ROOT_CONTEXT
  const { traceId, spanId, isSampled } = parent
  const state = lines.get('tracestate')?.join(',')
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
    ...(state === undefined ? {} : { traceState: new TraceState(state) }),
  })
}

function inject(headers: Record<string, string>, span: Span): void {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext()
  headers['traceparent'] = `00-${traceId}-${spanId}-0${traceFlags & TraceFlags.SAMPLED}`
  const state = traceState?.serialize() ?? ''
  if (state === '') delete headers['tracestate']
  else headers['tracestate'] = state
}

function fail(span: Span, error: string): void {
  span.setAttribute('error.type', error)
  span.setStatus({ code: SpanStatusCode.ERROR })
}

function numberIn(env: NodeJS.ProcessEnv, warn: Warn): (name: string, by: number) => number {
  return (name, by) => {
    const text = env[name] ?? ''
    const value = Number(text)
    if (text === '') return by
    if (Number.isSafeInteger(value) && value > 0) return value
    warn(name, `it is no positive number: ${by} is used`)
    return by
  }
}

function samplerOf(env: NodeJS.ProcessEnv, warn: Warn): Sampler {
  const name = env['OTEL_TRACES_SAMPLER'] ?? ''
  const [, isParentBased, root = ''] = /^(parentbased_)?(.*)$/.exec(name === '' ? 'parentbased_always_on' : name) ?? []
  const sampler = rootSampler(root, env, warn)
  if (sampler === null) {
    warn('OTEL_TRACES_SAMPLER', 'there is no such sampler: parentbased_always_on is used')
    return new ParentBasedSampler({ root: new AlwaysOnSampler() })
  }
  return isParentBased === undefined ? sampler : new ParentBasedSampler({ root: sampler })
}

function rootSampler(name: string, env: NodeJS.ProcessEnv, warn: Warn): Sampler | null {
  if (name === 'always_on') return new AlwaysOnSampler()
  if (name === 'always_off') return new AlwaysOffSampler()
  if (name !== 'traceidratio') return null
  const text = env['OTEL_TRACES_SAMPLER_ARG'] ?? ''
  const ratio = text === '' ? 1 : Number(text)
  if (ratio >= 0 && ratio <= 1) return new TraceIdRatioBasedSampler(ratio)
  warn('OTEL_TRACES_SAMPLER_ARG', 'it is no number from 0 to 1: 1 is used')
  return new TraceIdRatioBasedSampler(1)
}

/** What the library reports, mostly that the receiver does not answer. */
function reportFailures(log: Logger): void {
  let reportedAt = -Infinity
  const say = (message: string, ...details: readonly unknown[]): void => {
    const now = performance.now()
    if (now - reportedAt < REPORT_EVERY_MS) return
    reportedAt = now
    log.warn({ detail: [message, ...details].map(String).join(' ').slice(0, 500) }, 'traces could not be exported')
  }
  const ignored = (): void => {}
  diag.setLogger({ error: say, warn: say, info: ignored, debug: ignored, verbose: ignored }, DiagLogLevel.WARN)
}
