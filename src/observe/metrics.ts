/** The metrics of /metrics. No label has a value that a caller chose: no thread, user, target or header. */
import {
  AggregatorRegistry,
  collectDefaultMetrics,
  Counter,
  Gauge,
  Registry,
  type CounterConfiguration,
  type GaugeConfiguration,
  type MetricObject,
} from 'prom-client'
import type { Enforcement } from '../core/decide/decide.ts'
import type { Reason } from '../core/reasons.ts'
import type { Verdict } from '../core/route/interrupt-answers.ts'
import type { RouteId } from '../core/route/routes.ts'
import { testedState, versionNumbers, type Tested } from '../core/route/runtime-version.ts'
import { registerHistogram, type Histogram, type HistogramConfiguration } from './histogram.ts'
import { packageVersion } from './version.ts'

/** `none` for a request without a route. */
export type RouteLabel = RouteId | 'none'

export type Ruling = Reason | 'permitted'

export interface Metrics {
  readonly requests: RequestMetrics
  readonly streams: StreamMetrics
  readonly store: StoreMetrics
  readonly keys: KeyMetrics
  readonly configuration: ConfigurationMetrics
  readonly audit: AuditMetrics
  readonly tls: TlsMetrics
  readonly connections: ConnectionMetrics
  readonly readiness: ReadinessMetrics
  readonly memory: MemoryMetrics
  readonly runtimes: RuntimeMetrics
  figures(): Promise<Figures>
  expose(): Promise<{ readonly type: string; readonly text: string }>
}

/** `upstream`: until the head of the upstream's answer. */
export type TimedPart = 'request' | 'gateway' | 'upstream'

export interface RequestMetrics {
  decided(route: RouteLabel, reason: Ruling): void
  /** A request that passed under `observe`, and that enforcing would have refused. */
  wouldRefuse(route: RouteLabel, reason: Reason): void
  shadowDiffered(route: RouteLabel, enforced: Ruling, shadow: Ruling | 'undecided' | 'failed'): void
  upstreamFailed(reason: Reason): void
  claimed(outcome: 'new' | 'released' | 'lost-race'): void
  dropped(kind: 'body-key' | 'nested-key' | 'query-name', count: number): void
  interruptAnswered(answer: Verdict, decision: 'permitted' | 'refused'): void
  /** `status` is 0 if no answer began. */
  tokens(kind: 'reported' | 'estimated', count: number): void
  took(part: TimedPart, route: RouteLabel, status: number, milliseconds: number): void
}

export interface StreamMetrics {
  streamOpened(): void
  streamClosed(end: StreamEnd, seconds: number): void
}

/** Why the gateway ends an answer. */
export type EndReason =
  | 'not-allowed'
  | 'credential-expired'
  | 'credential-invalid'
  | 'ended-by-operator'
  | 'shutting-down'
  | 'rate-limited'
  | 'budget-exceeded'
  | 'stalled'

/** `complete`: the caller has all that the upstream sent. */
export type StreamEnd = 'complete' | 'caller-left' | 'upstream-broke-off' | EndReason

export interface StoreMetrics {
  /** A call that returns no promise was answered from a cache, and is not measured. */
  timed<Values extends unknown[], Result>(
    operation: string,
    engine: string,
    call: (...values: Values) => Result,
  ): (...values: Values) => Result
  /** `oldest` in milliseconds since the epoch. */
  unconfirmed(claims: { readonly count: number; readonly oldest: number | null }): void
}

export interface KeyMetrics {
  keyFetchFailed(issuer: string): void
  keysStale(issuer: string): void
  keysFresh(issuer: string): void
  /** `at` in milliseconds since the epoch. */
  keysFetched(issuer: string, at: number): void
}

export interface ConfigurationMetrics {
  /** The configuration was read and is active, at start or by a reload. */
  loaded(): void
  reloaded(outcome: 'reloaded' | 'unchanged' | 'refused', generation: number): void
  enforcement(enforcement: Enforcement): void
  shadowPolicy(state: 'on' | 'off'): void
}

export interface TlsMetrics {
  handshakeFailed(reason: 'client-certificate' | 'timeout' | 'closed' | 'protocol'): void
  /** Those that the gateway presents; `until` in milliseconds since the epoch. */
  presented(certificates: readonly { readonly name: string; readonly until: number }[]): void
}

/** Of the public listener. */
export interface ConnectionMetrics {
  connectionOpened(): void
  connectionClosed(): void
  /** A new connection came while listen.connections were open: an idle one was closed for it, or it was refused. */
  overLimit(outcome: 'idle-closed' | 'refused'): void
}

export interface ReadinessMetrics {
  /** A condition of /readyz; the configuration names it. */
  readonly condition: (name: string, pending: boolean) => void
}

export interface RuntimeMetrics {
  /** The runtime or server behind an upstream says that it has this version. */
  runtime(upstream: string, version: string, tested?: Tested): void
  /** Another configuration may have other upstreams. */
  forgetRuntimes(): void
}

export interface MemoryMetrics {
  /** Read at each scrape. */
  budgets(budgets: Readonly<Record<MemoryUse, Budget>>): void
}

/** `bodies`: their bytes. `reading`: what reading them takes. `answers`: those that the gateway rewrites. */
export type MemoryUse = 'bodies' | 'reading' | 'answers'

interface Budget {
  readonly most: number
  used(): number
}

export interface AuditMetrics {
  auditWritten(lines: number): void
  auditLost(lines: number): void
}

export type Figures = readonly MetricObject[]

/** Adds counters; gauges of a state report the worst value. */
export function joined(all: readonly Figures[]): Registry {
  return AggregatorRegistry.aggregate(all.map((figures) => [...figures]))
}

/** Each gateway has its own registry, so that two gateways in one process don't mix. */
export function makeMetrics(registry = new Registry()): Metrics {
  collectDefaultMetrics({ register: registry })
  const register = registerIn(registry)
  register
    .gauge('build_info', 'Always 1: the versions of the gateway and of Node.js are its labels.', 'max', ['version', 'node'])
    .set({ version: packageVersion(), node: process.version }, 1)
  return {
    requests: requestMetrics(register),
    streams: streamMetrics(register),
    store: storeMetrics(register),
    keys: keyMetrics(register),
    configuration: configurationMetrics(register),
    audit: auditMetrics(register),
    tls: tlsMetrics(register),
    connections: connectionMetrics(register),
    readiness: readinessMetrics(register),
    memory: memoryMetrics(register),
    runtimes: runtimeMetrics(register),
    figures: () => registry.getMetricsAsJSON(),
    expose: async () => ({ type: registry.contentType, text: await registry.metrics() }),
  }
}

type Register = ReturnType<typeof registerIn>

function registerIn(registry: Registry) {
  const registers = [registry]
  return {
    counter: (name: string, help: string, labelNames: string[] = [], more: Pick<CounterConfiguration<string>, 'collect'> = {}) =>
      new Counter({ name: `threadwarden_${name}`, help, labelNames, registers, ...more }),
    /** `aggregator`: how the values of several workers become one. */
    gauge: (
      name: string,
      help: string,
      aggregator: 'sum' | 'max' | 'min',
      labelNames: string[] = [],
      more: Pick<GaugeConfiguration<string>, 'collect'> = {},
    ) => new Gauge({ name: `threadwarden_${name}`, help, aggregator, labelNames, registers, ...more }),
    histogram: (name: string, help: string, labelNames: HistogramConfiguration['labelNames'], bounds: readonly number[]) =>
      registerHistogram(registry, { name: `threadwarden_${name}`, help, labelNames, bounds }),
  }
}

function observe(histogram: Histogram, first: string, second: string, seconds: number): void {
  const { bounds } = histogram
  const series = histogram.series.get(first)?.get(second) ?? histogram.add(first, second)
  let at = 0
  while (at < bounds.length && seconds > (bounds[at] ?? 0)) at += 1
  series.counts[at] = (series.counts[at] ?? 0) + 1
  series.sum += seconds
}

const BY_ROUTE_AND_STATUS = ['route', 'status_class'] as const
const STATUS_CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** Seconds that callers notice. */
const ANSWER_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Seconds of the gateway's own work and of one operation of the store: less than a millisecond each where nothing is slow. */
const WORK_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]

function requestMetrics({ counter, histogram }: Register): RequestMetrics {
  // Counted separately and read at a scrape: the library's counter would hash its labels with every request.
  const decisions = new Map<RouteLabel, Map<Ruling, number>>()
  counter('decisions_total', 'Requests by route and by the reason of the decision.', ['route', 'reason'], {
    collect() {
      this.reset()
      for (const [route, counts] of decisions) for (const [reason, count] of counts) this.inc({ route, reason }, count)
    },
  })
  const wouldRefuse = counter(
    'would_refuse_total',
    'Requests that passed under enforcement: observe and would be refused under enforcement: enforce.',
    ['route', 'reason'],
  )
  const shadow = counter('shadow_differences_total', 'Requests that the shadow policy would have decided differently.', [
    'route',
    'enforced',
    'shadow',
  ])
  const upstream = counter('upstream_errors_total', 'Permitted requests that got no usable answer from the upstream.', ['reason'])
  const claims = counter('claims_total', 'Threads claimed, released after a run that did not start, or lost to another claim.', [
    'outcome',
  ])
  // A ratio to no claims at all would be no number.
  for (const outcome of ['new', 'released', 'lost-race']) claims.inc({ outcome }, 0)
  const times: Readonly<Record<TimedPart, Histogram>> = {
    request: histogram(
      'request_duration_seconds',
      'Time from the head of a request to the end of its answer.',
      BY_ROUTE_AND_STATUS,
      ANSWER_BOUNDS,
    ),
    gateway: histogram(
      'gateway_duration_seconds',
      'Time from the head of a request to the head of its answer, without the waits for its body and for the upstream.',
      BY_ROUTE_AND_STATUS,
      WORK_BOUNDS,
    ),
    upstream: histogram(
      'upstream_first_byte_seconds',
      "Time until the head of the upstream's answer has arrived, with connecting and sending.",
      BY_ROUTE_AND_STATUS,
      ANSWER_BOUNDS,
    ),
  }
  const dropped = counter(
    'dropped_total',
    'Body keys, keys inside a run, forwarded properties, tools and query names that were not forwarded.',
    ['kind'],
  )
  const answers = counter('interrupt_answers_total', 'Answers to interrupts of agents, by answer and decision.', [
    'answer',
    'decision',
  ])
  const tokens = counter(
    'tokens_total',
    'Tokens of runs and suggestions that count in a budget: reported by the agent, or estimated by the gateway.',
    ['kind'],
  )
  return {
    decided(route, reason) {
      let counts = decisions.get(route)
      if (counts === undefined) decisions.set(route, (counts = new Map<Ruling, number>()))
      counts.set(reason, (counts.get(reason) ?? 0) + 1)
    },
    wouldRefuse: (route, reason) => wouldRefuse.inc({ route, reason }),
    shadowDiffered: (route, enforced, other) => shadow.inc({ route, enforced, shadow: other }),
    upstreamFailed: (reason) => upstream.inc({ reason }),
    claimed: (outcome) => claims.inc({ outcome }),
    interruptAnswered: (answer, decision) => answers.inc({ answer, decision }),
    dropped: (kind, count) => {
      if (count > 0) dropped.inc({ kind }, count)
    },
    tokens: (kind, count) => {
      if (count > 0) tokens.inc({ kind }, count)
    },
    took(part, route, status, milliseconds) {
      // A status beyond 599 counts as a server error (RFC 9110 §15).
      const statusClass = STATUS_CLASSES[Math.min(Math.trunc(status / 100), 5)] ?? 'none'
      observe(times[part], route, statusClass, milliseconds / 1000)
    },
  }
}

/** Seconds of runs and of connections that wait for events. */
const STREAM_BOUNDS = [0.1, 0.5, 1, 5, 15, 30, 60, 300, 900, 3600, 14_400]

function streamMetrics({ gauge, histogram }: Register): StreamMetrics {
  const streams = gauge('open_streams', 'Open event streams.', 'sum')
  const durations = histogram(
    'stream_duration_seconds',
    'Event streams that have ended, by the reason.',
    ['reason'],
    STREAM_BOUNDS,
  )
  return {
    streamOpened: streams.inc.bind(streams),
    streamClosed(end, seconds) {
      streams.dec()
      observe(durations, end, '', seconds)
    },
  }
}

function storeMetrics({ counter, gauge, histogram }: Register): StoreMetrics {
  const by = ['operation', 'engine'] as const
  const durations = histogram(
    'store_operation_duration_seconds',
    'Operations of the store that requests need, with the waits for locks and connections.',
    by,
    WORK_BOUNDS,
  )
  const errors = counter('store_operation_errors_total', 'Operations of the store that failed.', [...by])
  let oldest: number | null = null
  const claims = gauge(
    'unconfirmed_claims',
    'Claims in the store that no answer of the upstream has confirmed yet, up to 10000.',
    'max',
  )
  gauge('unconfirmed_claim_age_seconds', 'Age of the oldest unconfirmed claim in the store; 0 without one.', 'max', [], {
    collect() {
      this.set(oldest === null ? 0 : Math.max(0, Date.now() - oldest) / 1000)
    },
  })
  const measure = async (operation: string, engine: string, began: number, result: Promise<unknown>): Promise<void> => {
    try {
      await result
    } catch {
      errors.inc({ operation, engine })
    }
    observe(durations, operation, engine, (performance.now() - began) / 1000)
  }
  return {
    timed: (operation, engine, call) => {
      // An alert sees the first error only as a rise from 0.
      errors.inc({ operation, engine }, 0)
      return (...values) => {
        const began = performance.now()
        const result = Reflect.apply(call, undefined, values)
        if (result instanceof Promise) void measure(operation, engine, began, result)
        return result
      }
    },
    unconfirmed(found) {
      claims.set(found.count)
      oldest = found.oldest
    },
  }
}

function keyMetrics({ counter, gauge }: Register): KeyMetrics {
  const failures = counter('key_fetch_failures_total', "Failed fetches of an issuer's keys.", ['issuer'])
  const stale = gauge('issuer_keys_stale', '1 while the issuer is unavailable and its last known keys are used.', 'max', [
    'issuer',
  ])
  const fetchedAt = gauge(
    'issuer_keys_fetched_timestamp_seconds',
    "When an issuer's keys were last fetched: seconds since the epoch.",
    'min',
    ['issuer'],
  )
  return {
    keyFetchFailed: (issuer) => failures.inc({ issuer }),
    keysStale: (issuer) => stale.set({ issuer }, 1),
    keysFresh(issuer) {
      stale.set({ issuer }, 0)
      // An alert sees the first failure only as a rise from 0.
      failures.inc({ issuer }, 0)
    },
    keysFetched: (issuer, at) => fetchedAt.set({ issuer }, at / 1000),
  }
}

function configurationMetrics({ counter, gauge }: Register): ConfigurationMetrics {
  const reloads = counter('config_reloads_total', 'Requested reloads of the configuration, by outcome.', ['outcome'])
  const reloadFine = gauge(
    'config_last_reload_successful',
    '0 while the last reload was refused and the previous configuration stays active.',
    'min',
  )
  reloadFine.set(1)
  const loadedAt = gauge(
    'config_last_reload_success_timestamp_seconds',
    'When the configuration was last read and found valid, at start or by a reload: seconds since the epoch.',
    'max',
  )
  const loaded = (): void => loadedAt.setToCurrentTime()
  const generation = gauge(
    'config_generation',
    'Number of the active configuration: 1 at start, and one more with every activated reload.',
    'max',
  )
  generation.set(1)
  const observing = gauge('observing', '1 while ownership violations are reported and not refused (enforcement: observe).', 'max')
  const shadowing = gauge('shadow_policy', '1 while a second policy is evaluated beside the enforced one (shadowPolicy).', 'max')
  return {
    loaded,
    reloaded: (outcome, number) => {
      reloads.inc({ outcome })
      if (outcome === 'unchanged') loaded()
      reloadFine.set(outcome === 'refused' ? 0 : 1)
      generation.set(number)
    },
    enforcement: (enforcement) => observing.set(enforcement === 'observe' ? 1 : 0),
    shadowPolicy: (state) => shadowing.set(state === 'on' ? 1 : 0),
  }
}

function tlsMetrics({ counter, gauge }: Register): TlsMetrics {
  const failures = counter('tls_handshake_failures_total', 'TLS handshakes at the public listener that failed.', ['reason'])
  const expiry = gauge(
    'certificate_expiry_timestamp_seconds',
    'When a certificate that the gateway presents, or one of its chain, expires: seconds since the epoch.',
    'min',
    ['certificate'],
  )
  return {
    handshakeFailed: (reason) => failures.inc({ reason }),
    presented(certificates) {
      // Removes those that are no longer configured.
      expiry.reset()
      for (const { name, until } of certificates) expiry.set({ certificate: name }, until / 1000)
    },
  }
}

function connectionMetrics({ counter, gauge }: Register): ConnectionMetrics {
  const connections = gauge('open_connections', 'Open connections of the public listener.', 'sum')
  const over = counter(
    'connections_over_limit_total',
    'New connections while listen.connections were open: an idle one was closed for it, or it was refused.',
    ['outcome'],
  )
  // An alert sees the first refusal only as a rise from 0.
  over.inc({ outcome: 'idle-closed' }, 0)
  over.inc({ outcome: 'refused' }, 0)
  return {
    connectionOpened: connections.inc.bind(connections),
    connectionClosed: connections.dec.bind(connections),
    overLimit: (outcome) => over.inc({ outcome }),
  }
}

function readinessMetrics({ gauge }: Register): ReadinessMetrics {
  const conditions = gauge('readiness_pending', '1 while /readyz reports this condition as pending.', 'max', ['condition'])
  return { condition: (condition, pending) => conditions.set({ condition }, pending ? 1 : 0) }
}

/** An upstream chooses what it calls its version: only a text of that form becomes a label, and one at a time. */
function runtimeMetrics({ gauge }: Register): RuntimeMetrics {
  const versions = new Map<string, { readonly version: string; readonly tested: Tested }>()
  gauge(
    'runtime_info',
    'Always 1: the version of the runtime or LangGraph server behind an upstream, and whether this gateway is tested with it.',
    'max',
    ['upstream', 'version', 'tested'],
    {
      collect() {
        this.reset()
        for (const [upstream, { version, tested }] of versions) {
          const label = versionNumbers(version) === null ? 'unknown' : version
          this.set({ upstream, version: label, tested }, 1)
        }
      },
    },
  )
  return {
    runtime: (upstream, version, tested = testedState(version)) => void versions.set(upstream, { version, tested }),
    forgetRuntimes: () => versions.clear(),
  }
}

function memoryMetrics({ gauge }: Register): MemoryMetrics {
  let known: Readonly<Record<string, Budget>> = {}
  const reading = (of: (budget: Budget) => number): Pick<GaugeConfiguration<string>, 'collect'> => ({
    collect() {
      for (const [use, budget] of Object.entries(known)) this.set({ use }, Math.round(of(budget)))
    },
  })
  gauge(
    'memory_budget_used_bytes',
    'Memory that requests hold of a budget.',
    'sum',
    ['use'],
    reading((budget) => budget.used()),
  )
  gauge(
    'memory_budget_bytes',
    'The budget: a request that needs more than is left gets 503.',
    'sum',
    ['use'],
    reading(({ most }) => most),
  )
  return { budgets: (budgets) => void (known = budgets) }
}

function auditMetrics({ counter }: Register): AuditMetrics {
  const written = counter('audit_lines_total', 'Audit lines written.')
  const lost = counter('audit_lost_total', 'Audit lines that could not be written and are lost.')
  return { auditWritten: (lines) => written.inc(lines), auditLost: (lines) => lost.inc(lines) }
}
