/**
 * Makes traces with OpenTelemetry and sends them by OTLP, as the standard environment variables say. The exporter reads those that
 * begin with OTEL_EXPORTER_OTLP by itself.
 */
import { diag, DiagLogLevel, ROOT_CONTEXT, SpanKind, trace, TraceFlags, type SpanContext } from '@opentelemetry/api'
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
  RandomIdGenerator,
  SamplingDecision,
  TraceIdRatioBasedSampler,
  type Sampler,
} from '@opentelemetry/sdk-trace'
import type { HeaderLines } from '../core/wire/headers.ts'
import type { Logger } from './log.ts'
import { RecordedRequest, writeTraceHeaders, type SpanSource } from './recorded-request.ts'
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
  const source: SpanSource = {
    // What the environment says wins.
    resource: defaultResource()
      .merge(named)
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    scope: { name: 'threadwarden', version: packageVersion() },
    ids: new RandomIdGenerator(),
    processor,
    tellsIds: env['THREADWARDEN_TRACE_IDS'] === 'true',
  }
  const sampler = samplerOf(env, warn)

  const begin: Tracing['begin'] = (lines, caller) => {
    const parent = caller === 'trusted' ? remoteParent(lines) : undefined
    const traceId = parent?.traceId ?? source.ids.generateTraceId()
    const around = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent)
    const { decision } = sampler.shouldSample(around, traceId, 'request', SpanKind.SERVER, {}, [])
    const isSampled = decision === SamplingDecision.RECORD_AND_SAMPLED
    // Half of a new trace id is as random as another id would be, and cheaper. A continued trace has other requests, too.
    const spanId = parent === undefined ? traceId.slice(16) : source.ids.generateSpanId()
    const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE
    const state = parent?.traceState
    const context: SpanContext =
      state === undefined ? { traceId, spanId, traceFlags } : { traceId, spanId, traceFlags, traceState: state }
    return isSampled ? new RecordedRequest(source, context, parent) : new UnrecordedRequest(context)
  }

  return {
    begin,
    async stop() {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, EXPORT_MS)))
      await Promise.race([processor.shutdown().catch(() => {}), late])
      clearTimeout(timer)
    },
  }
}

/** A request that is not sampled still tells the upstream so, and has an id for the log. Each of its parts is itself. */
class UnrecordedRequest implements RequestTrace, PartTrace {
  readonly traceId: string
  readonly #context: SpanContext

  constructor(context: SpanContext) {
    this.traceId = context.traceId
    this.#context = context
  }

  begin(): PartTrace {
    return this
  }

  inject(headers: Record<string, string>): void {
    writeTraceHeaders(headers, this.#context)
  }

  end(): void {}
}

function remoteParent(lines: HeaderLines): SpanContext | undefined {
  const parent = traceParentOf(lines)
  if (parent === null) return undefined
  const { traceId, spanId, isSampled } = parent
  const state = lines.get('tracestate')?.join(',')
  return {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
    ...(state === undefined ? {} : { traceState: new TraceState(state) }),
  }
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
