/** The connection to an upstream, with its probes: kept over a configuration change that leaves the upstream as it is. */
import { createHash } from 'node:crypto'
import { serverHeaders, type Mount } from '../config/mounts.ts'
import type { Enforcement } from '../core/decide/decide.ts'
import { ENDPOINT, type RuntimeFacts } from '../core/route/transport.ts'
import type { Sources } from '../document/sources.ts'
import { makeLangGraphProbe } from '../http/upstream/langgraph-probe.ts'
import { runStartupChecks, type StartupChecks } from '../http/upstream/startup-checks.ts'
import type { Readiness } from '../http/listeners/readiness.ts'
import { makeTransportProbe, type TransportProbe } from '../http/upstream/transport-probe.ts'
import { openUpstream, type Upstream } from '../http/upstream/upstream.ts'
import { makeVersionNotices, type VersionNotices } from '../http/upstream/version-notices.ts'
import type { Logger } from '../observe/log.ts'
import type { RuntimeMetrics } from '../observe/metrics.ts'
import { upstreamTls } from '../tls/material.ts'
import type { StoreState } from '../store/port/state.ts'

export interface UpstreamHandle {
  readonly fingerprint: string
  readonly upstream: Upstream
  readonly probe: TransportProbe
  readonly startupChecks: StartupChecks
  readonly versionNotices: VersionNotices
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Each snapshot holds its upstreams until its last request is over. */
  readonly hold: () => void
  readonly release: () => void
  /** Asks nothing more. The connections close once no snapshot holds them. */
  readonly retire: () => void
}

export interface UpstreamHandleParts {
  readonly store: Pick<StoreState, 'isEmpty'>
  /** The upstream, if it is a runtime in the same process; null for the configured upstream. */
  readonly runtime: Upstream | null
  readonly readiness: Readiness
  readonly metrics: RuntimeMetrics
  readonly log: Logger
  readonly addresses: readonly string[]
  readonly sources: Sources
}

/** Milliseconds between two probes of the upstream. */
const PROBE_INTERVALS = { pending: 500, known: 15_000 }

/** @param known an existing connection: it is kept if it is configured alike */
export function makeUpstreamHandle(
  mount: Mount,
  enforcement: Enforcement,
  surroundings: UpstreamHandleParts,
  known: UpstreamHandle | null,
): UpstreamHandle {
  const { key, scope, timeouts, url, basePath, transport } = mount
  const tls = upstreamTls(mount.tls, surroundings.sources)
  const headers = serverHeaders(mount)
  // Under `observe`, no caller is refused for what the upstream can't tell, and no user becomes an owner.
  const unknownThread = enforcement === 'observe' ? 'deny' : mount.unknownThread
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([url, tls, timeouts, basePath, transport, headers, unknownThread, scope]))
    .digest('hex')
  if (known?.fingerprint === fingerprint) return known
  const { store, addresses } = surroundings
  const readiness = namedFor(mount, surroundings.readiness)
  const log = key === '' ? surroundings.log : surroundings.log.child({ upstream: key })
  const upstream = surroundings.runtime ?? openUpstream({ url, timeouts, tls })
  const startupChecks = runStartupChecks({
    upstream,
    upstreamUrl: url,
    addresses,
    basePath,
    headers,
    store,
    scope,
    unknownThread,
    readiness,
    log,
  })
  const versionNotices = makeVersionNotices(key, transport === 'langgraph' ? 'langgraph' : 'runtime', surroundings.metrics, log)
  const onNews = (facts: RuntimeFacts): void => startupChecks.look(facts)
  const asking = {
    upstream,
    basePath,
    headers,
    readiness,
    onNews,
    onVersion: versionNotices.met,
    log,
    intervals: PROBE_INTERVALS,
  }
  const probe =
    transport === 'endpoint'
      ? unasked(onNews)
      : transport === 'langgraph'
        ? makeLangGraphProbe(asking)
        : makeTransportProbe({ ...asking, named: transport === 'auto' ? null : transport })
  let holders = 0
  return {
    fingerprint,
    upstream,
    probe,
    startupChecks,
    versionNotices,
    headers,
    hold: () => void (holders += 1),
    release() {
      holders -= 1
      // A final close meanwhile makes this one fail; no code waits for it.
      if (holders === 0) upstream.retire().catch(() => {})
    },
    retire() {
      probe.stop()
      startupChecks.stop()
    },
  }
}

/** A self-hosted agent takes runs and answers no question: only the configuration says which kind it is. */
function unasked(onNews: (facts: RuntimeFacts) => void): TransportProbe {
  return { facts: ENDPOINT, suspect: () => {}, start: async () => onNews(ENDPOINT), stop: () => {} }
}

export const CONDITIONS = ['upstream', 'unknownThread'] as const

/** With several upstreams, the name of a condition says which one it is about. */
export function conditionOf(name: string, key: string): string {
  return key === '' ? name : `${name}:${key}`
}

function namedFor({ key }: Mount, readiness: Readiness): Pick<Readiness, 'set'> {
  return { set: (name, pending) => readiness.set(conditionOf(name, key), pending) }
}
