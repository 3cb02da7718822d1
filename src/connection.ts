/** The connection to the upstream, with what watches it: kept over a change of the configuration that leaves it as it is. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Config } from './config/schema.ts'
import { watchRollout, type Rollout } from './http/rollout.ts'
import type { Readiness } from './http/readiness.ts'
import { makeTransportProbe, type TransportProbe } from './http/transport-probe.ts'
import { openUpstream, type Upstream } from './http/upstream.ts'
import type { Logger } from './observe/log.ts'
import type { OwnershipStore } from './store/port.ts'

/** An upstream that is looked after. */
export interface Connection {
  readonly fingerprint: string
  readonly upstream: Upstream
  readonly probe: TransportProbe
  readonly rollout: Rollout
  /** `upstream.headers`, by name in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Notes that a request is under way that may come to need it; gives what says that it is over, to be called once. */
  readonly hold: () => () => void
  /** Lets go of it when nothing is under way any more. */
  readonly retire: () => void
}

/** What a connection needs from outside. */
export interface ConnectionSurroundings {
  readonly store: OwnershipStore
  readonly readiness: Readiness
  readonly log: Logger
  /** The addresses of this machine by which others reach it. */
  readonly addresses: readonly string[]
}

/** How often the upstream is asked what it is, in milliseconds. */
const PROBE_INTERVALS = { pending: 500, known: 15_000 }

/**
 * Connects to the upstream of a configuration.
 * @param known a connection that there is: it is kept if it is configured alike
 */
export function connect(config: Config, surroundings: ConnectionSurroundings, known: Connection | null): Connection {
  const { ca: caFile, timeouts, url, basePath, transport, headers: written } = config.upstream
  const ca = caFile === undefined ? undefined : readFileSync(caFile, 'utf8')
  const headers = Object.fromEntries(Object.entries(written).map(([name, value]) => [name.toLowerCase(), value]))
  // Under `observe` nobody is refused for what the upstream can't tell, and nobody becomes an owner.
  const unknownThread = config.enforcement === 'observe' ? 'deny' : config.ownership.unknownThread
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([url, ca, timeouts, basePath, transport, headers, unknownThread]))
    .digest('hex')
  if (known?.fingerprint === fingerprint) return known
  const { store, readiness, log, addresses } = surroundings
  const upstream = openUpstream({ url, timeouts, ...(ca === undefined ? {} : { ca }) })
  const rollout = watchRollout({
    upstream,
    upstreamUrl: url,
    addresses,
    basePath,
    headers,
    store,
    unknownThread,
    readiness,
    log,
  })
  const probe = makeTransportProbe({
    upstream,
    basePath,
    headers,
    named: transport === 'auto' ? null : transport,
    readiness,
    onNews: (facts) => rollout.look(facts),
    log,
    intervals: PROBE_INTERVALS,
  })
  // Of all the requests that came while it was in force, whichever generation they go by.
  let underWay = 0
  let retired = false
  const letGo = (): void => {
    // Whoever closes it for good meanwhile makes this one fail, and nobody waits for it.
    if (retired && underWay === 0) upstream.retire().catch(() => {})
  }
  const hold = (): (() => void) => {
    underWay += 1
    return () => {
      underWay -= 1
      letGo()
    }
  }
  const retire = (): void => {
    retired = true
    probe.stop()
    rollout.stop()
    letGo()
  }
  return { fingerprint, upstream, probe, rollout, headers, hold, retire }
}
