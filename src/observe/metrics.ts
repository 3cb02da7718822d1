/** The figures of /metrics. No label ever holds what a caller chose: no thread, no user, no target, no header. */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { Reason } from '../core/reasons.ts'
import type { RouteId } from '../core/routes.ts'

/** A route, or `none` for a request that named none. */
export type RouteLabel = RouteId | 'none'

/** What the gateway counts. */
export interface Metrics {
  decided(route: RouteLabel, reason: Reason | 'permitted'): void
  upstreamFailed(reason: Reason): void
  claimed(outcome: 'new' | 'released' | 'lost-race'): void
  streamOpened(): void
  streamClosed(): void
  dropped(kind: 'body-key' | 'query-name', count: number): void
  keyFetchFailed(issuer: string): void
  /** Whether an issuer fails while its last good keys are used. */
  keysStale(issuer: string, stale: boolean): void
  /** The text of /metrics and its content type. */
  expose(): Promise<{ readonly type: string; readonly text: string }>
}

/** Makes the figures, all in one registry of its own, so that two gateways in one process don't mix. */
export function makeMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const decisions = new Counter({
    name: 'threadwarden_decisions_total',
    help: 'Requests by route and by the reason of the decision.',
    labelNames: ['route', 'reason'],
    registers,
  })
  const upstream = new Counter({
    name: 'threadwarden_upstream_errors_total',
    help: 'Answers that the upstream failed to give.',
    labelNames: ['reason'],
    registers,
  })
  const claims = new Counter({
    name: 'threadwarden_claims_total',
    help: 'Threads claimed, released after a run that did not start, or lost to another claim.',
    labelNames: ['outcome'],
    registers,
  })
  const streams = new Gauge({ name: 'threadwarden_open_streams', help: 'Event streams that are open now.', registers })
  const dropped = new Counter({
    name: 'threadwarden_dropped_total',
    help: 'Body keys, forwarded properties and query names that did not pass.',
    labelNames: ['kind'],
    registers,
  })
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
    registers,
  })
  return {
    decided: (route, reason) => decisions.inc({ route, reason }),
    upstreamFailed: (reason) => upstream.inc({ reason }),
    claimed: (outcome) => claims.inc({ outcome }),
    streamOpened: () => streams.inc(),
    streamClosed: () => streams.dec(),
    dropped: (kind, count) => dropped.inc({ kind }, count),
    keyFetchFailed: (issuer) => keyFetches.inc({ issuer }),
    keysStale: (issuer, isStale) => stale.set({ issuer }, isStale ? 1 : 0),
    expose: async () => ({ type: registry.contentType, text: await registry.metrics() }),
  }
}
