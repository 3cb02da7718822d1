/** The connection to an upstream, with what watches it: kept over a change of the configuration that leaves it as it is. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { serverHeaders, type Mount } from '../config/mounts.ts'
import type { Enforcement } from '../core/decide/decide.ts'
import { ENDPOINT, type RuntimeFacts } from '../core/route/transport.ts'
import { runStartupChecks, type StartupChecks } from '../http/upstream/startup-checks.ts'
import type { Readiness } from '../http/listeners/readiness.ts'
import { makeTransportProbe, type TransportProbe } from '../http/upstream/transport-probe.ts'
import { openUpstream, type Upstream } from '../http/upstream/upstream.ts'
import type { Logger } from '../observe/log.ts'
import type { OwnershipStore } from '../store/port.ts'

/** An upstream that is looked after. */
export interface UpstreamHandle {
  readonly fingerprint: string
  readonly upstream: Upstream
  readonly probe: TransportProbe
  readonly startupChecks: StartupChecks
  /** The headers that the operator configured, by name in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Notes that a request is under way that may come to need it; gives what says that it is over, to be called once. */
  readonly hold: () => () => void
  /** Lets go of it when nothing is under way any more. */
  readonly retire: () => void
}

export interface UpstreamHandleParts {
  readonly store: OwnershipStore
  /** The upstream, where it is a runtime of the same process; null where it is as configured. */
  readonly runtime: Upstream | null
  readonly readiness: Readiness
  readonly log: Logger
  /** The addresses of this machine by which others reach it. */
  readonly addresses: readonly string[]
}

/** How often the upstream is asked what it is, in milliseconds. */
const PROBE_INTERVALS = { pending: 500, known: 15_000 }

/**
 * Connects to an upstream.
 * @param known a connection that there is: it is kept if it is configured alike
 */
export function makeUpstreamHandle(
  mount: Mount,
  enforcement: Enforcement,
  surroundings: UpstreamHandleParts,
  known: UpstreamHandle | null,
): UpstreamHandle {
  const { key, scope, ca: caFile, timeouts, url, basePath, transport } = mount
  const ca = caFile === undefined ? undefined : readFileSync(caFile, 'utf8')
  const headers = serverHeaders(mount)
  // Under `observe` nobody is refused for what the upstream can't tell, and nobody becomes an owner.
  const unknownThread = enforcement === 'observe' ? 'deny' : mount.unknownThread
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([url, ca, timeouts, basePath, transport, headers, unknownThread, scope]))
    .digest('hex')
  if (known?.fingerprint === fingerprint) return known
  const { store, addresses } = surroundings
  const readiness = namedFor(mount, surroundings.readiness)
  const log = key === '' ? surroundings.log : surroundings.log.child({ upstream: key })
  const upstream = surroundings.runtime ?? openUpstream({ url, timeouts, ...(ca === undefined ? {} : { ca }) })
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
  const onNews = (facts: RuntimeFacts): void => startupChecks.look(facts)
  const probe =
    transport === 'endpoint'
      ? unasked(onNews)
      : makeTransportProbe({
          upstream,
          basePath,
          headers,
          named: transport === 'auto' ? null : transport,
          readiness,
          onNews,
          log,
          intervals: PROBE_INTERVALS,
        })
  // Counts requests of all snapshots that used this handle.
  let underWay = 0
  let retired = false
  const letGo = (): void => {
    // Whoever closes it for good meanwhile makes this one fail, and nobody waits for it.
    if (retired && underWay === 0) upstream.retire().catch(() => {})
  }
  const over = (): void => {
    underWay -= 1
    letGo()
  }
  const hold = (): (() => void) => {
    underWay += 1
    return over
  }
  const retire = (): void => {
    retired = true
    probe.stop()
    startupChecks.stop()
    letGo()
  }
  return { fingerprint, upstream, probe, startupChecks: startupChecks, headers, hold, retire }
}

/** A self-hosted agent takes runs and answers no question: what it is, the configuration alone says. */
function unasked(onNews: (facts: RuntimeFacts) => void): TransportProbe {
  return { current: () => ENDPOINT, suspect: () => {}, start: async () => onNews(ENDPOINT), stop: () => {} }
}

/** The names of what is waited for of an upstream. */
export const CONDITIONS = ['upstream', 'unknownThread'] as const

/** The name of a condition, which says of which upstream it is where there are several. */
export function conditionOf(name: string, key: string): string {
  return key === '' ? name : `${name}:${key}`
}

function namedFor({ key }: Mount, readiness: Readiness): Pick<Readiness, 'set'> {
  return { set: (name, pending) => readiness.set(conditionOf(name, key), pending) }
}
