/** The metrics of /metrics. No label has a value that a caller chose: no thread, user, target or header. */
import { AggregatorRegistry, collectDefaultMetrics, Counter, Gauge, Registry, type MetricObject } from 'prom-client'
import type { Enforcement } from '../core/decide/decide.ts'
import type { Reason } from '../core/reasons.ts'
import type { RouteId } from '../core/route/routes.ts'

/** `none` for a request without a route. */
export type RouteLabel = RouteId | 'none'

export type Ruling = Reason | 'permitted'

export interface Metrics {
  readonly requests: RequestMetrics
  readonly streams: StreamMetrics
  readonly keys: KeyMetrics
  readonly configuration: ConfigurationMetrics
  readonly audit: AuditMetrics
  figures(): Promise<Figures>
  expose(): Promise<Exposed>
}

export interface RequestMetrics {
  decided(route: RouteLabel, reason: Ruling): void
  /** A request that passed under `observe`, and that enforcing would have refused. */
  wouldRefuse(route: RouteLabel, reason: Reason): void
  shadowDiffered(route: RouteLabel, enforced: Ruling, shadow: Ruling | 'undecided' | 'failed'): void
  upstreamFailed(reason: Reason): void
  claimed(outcome: 'new' | 'released' | 'lost-race'): void
  dropped(kind: 'body-key' | 'query-name', count: number): void
}

export interface StreamMetrics {
  streamOpened(): void
  streamClosed(): void
}

export interface KeyMetrics {
  keyFetchFailed(issuer: string): void
  keysStale(issuer: string): void
  keysFresh(issuer: string): void
}

export interface ConfigurationMetrics {
  reloaded(outcome: 'reloaded' | 'unchanged' | 'refused', generation: number): void
  enforcement(enforcement: Enforcement): void
  shadowPolicy(state: 'on' | 'off'): void
}

export interface AuditMetrics {
  auditWritten(lines: number): void
  auditLost(lines: number): void
}

export type Figures = readonly MetricObject[]

export interface Exposed {
  readonly type: string
  readonly text: string
}

/** Adds counters; gauges of a state report the worst value. */
export function joined(all: readonly Figures[]): Registry {
  return AggregatorRegistry.aggregate(all.map((figures) => [...figures]))
}

/** Each gateway has its own registry, so that two gateways in one process don't mix. */
export function makeMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    requests: requestMetrics(registers),
    streams: streamMetrics(registers),
    keys: keyMetrics(registers),
    configuration: configurationMetrics(registers),
    audit: auditMetrics(registers),
    figures: () => registry.getMetricsAsJSON(),
    expose: async () => ({ type: registry.contentType, text: await registry.metrics() }),
  }
}

function requestMetrics(registers: Registry[]): RequestMetrics {
  // Counted separately and read at a scrape: the library's counter would hash its labels with every request.
  const decisions = new Map<RouteLabel, Map<Ruling, number>>()
  new Counter({
    name: 'threadwarden_decisions_total',
    help: 'Requests by route and by the reason of the decision.',
    labelNames: ['route', 'reason'],
    registers,
    collect() {
      this.reset()
      for (const [route, counts] of decisions) for (const [reason, count] of counts) this.inc({ route, reason }, count)
    },
  })
  const decided: RequestMetrics['decided'] = (route, reason) => {
    let counts = decisions.get(route)
    if (counts === undefined) decisions.set(route, (counts = new Map<Ruling, number>()))
    counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  const wouldRefuse = new Counter({
    name: 'threadwarden_would_refuse_total',
    help: 'Requests that passed under enforcement: observe and would be refused under enforcement: enforce.',
    labelNames: ['route', 'reason'],
    registers,
  })
  const shadow = new Counter({
    name: 'threadwarden_shadow_differences_total',
    help: 'Requests that the shadow policy would have decided differently.',
    labelNames: ['route', 'enforced', 'shadow'],
    registers,
  })
  const upstream = new Counter({
    name: 'threadwarden_upstream_errors_total',
    help: 'Permitted requests that got no usable answer from the upstream.',
    labelNames: ['reason'],
    registers,
  })
  const claims = new Counter({
    name: 'threadwarden_claims_total',
    help: 'Threads claimed, released after a run that did not start, or lost to another claim.',
    labelNames: ['outcome'],
    registers,
  })
  const dropped = new Counter({
    name: 'threadwarden_dropped_total',
    help: 'Body keys, forwarded properties and query names that were not forwarded.',
    labelNames: ['kind'],
    registers,
  })
  return {
    decided,
    wouldRefuse: (route, reason) => wouldRefuse.inc({ route, reason }),
    shadowDiffered: (route, enforced, other) => shadow.inc({ route, enforced, shadow: other }),
    upstreamFailed: (reason) => upstream.inc({ reason }),
    claimed: (outcome) => claims.inc({ outcome }),
    dropped: (kind, count) => {
      if (count > 0) dropped.inc({ kind }, count)
    },
  }
}

function streamMetrics(registers: Registry[]): StreamMetrics {
  const streams = new Gauge({ name: 'threadwarden_open_streams', help: 'Open event streams.', registers })
  return { streamOpened: streams.inc.bind(streams), streamClosed: streams.dec.bind(streams) }
}

function keyMetrics(registers: Registry[]): KeyMetrics {
  const keyFetches = new Counter({
    name: 'threadwarden_key_fetch_failures_total',
    help: "Failed fetches of an issuer's keys.",
    labelNames: ['issuer'],
    registers,
  })
  const stale = new Gauge({
    name: 'threadwarden_issuer_keys_stale',
    help: '1 while the issuer fails and its last good keys are used.',
    labelNames: ['issuer'],
    aggregator: 'max',
    registers,
  })
  return {
    keyFetchFailed: (issuer) => keyFetches.inc({ issuer }),
    keysStale: (issuer) => stale.set({ issuer }, 1),
    keysFresh: (issuer) => stale.set({ issuer }, 0),
  }
}

function configurationMetrics(registers: Registry[]): ConfigurationMetrics {
  const reloads = new Counter({
    name: 'threadwarden_config_reloads_total',
    help: 'Requested reloads of the configuration, by outcome.',
    labelNames: ['outcome'],
    registers,
  })
  const reloadFine = new Gauge({
    name: 'threadwarden_config_last_reload_successful',
    help: '0 while the last reload was refused and the previous configuration stays active.',
    aggregator: 'min',
    registers,
  })
  reloadFine.set(1)
  const generation = new Gauge({
    name: 'threadwarden_config_generation',
    help: 'Number of the active configuration: 1 at start, and one more with every activated reload.',
    aggregator: 'max',
    registers,
  })
  generation.set(1)
  const observing = new Gauge({
    name: 'threadwarden_observing',
    help: '1 while ownership violations are reported and not refused (enforcement: observe).',
    aggregator: 'max',
    registers,
  })
  const shadowing = new Gauge({
    name: 'threadwarden_shadow_policy',
    help: '1 while a second policy is evaluated beside the enforced one (shadowPolicy).',
    aggregator: 'max',
    registers,
  })
  return {
    reloaded: (outcome, number) => {
      reloads.inc({ outcome })
      reloadFine.set(outcome === 'refused' ? 0 : 1)
      generation.set(number)
    },
    enforcement: (enforcement) => observing.set(enforcement === 'observe' ? 1 : 0),
    shadowPolicy: (state) => shadowing.set(state === 'on' ? 1 : 0),
  }
}

function auditMetrics(registers: Registry[]): AuditMetrics {
  const auditLines = new Counter({
    name: 'threadwarden_audit_lines_total',
    help: 'Audit lines written.',
    registers,
  })
  const auditLost = new Counter({
    name: 'threadwarden_audit_lost_total',
    help: 'Audit lines that could not be written and are lost.',
    registers,
  })
  return { auditWritten: (lines) => auditLines.inc(lines), auditLost: (lines) => auditLost.inc(lines) }
}
