/** What a running gateway reports to its operators, once or when it changes: in the log, in /readyz and in the metrics. */
import { basename } from 'node:path'
import type { Issuer } from '../auth/issuer.ts'
import type { storeOf } from '../config/store-place.ts'
import type { Enforcement } from '../core/decide/decide.ts'
import type { Transport } from '../core/route/transport.ts'
import type { Readiness } from '../http/listeners/readiness.ts'
import { lostWith } from '../store/durability.ts'
import type { RowStore } from '../store/port/administration.ts'
import type { ObservationStore } from '../store/port/observations.ts'
import { onceByName, type Logger } from '../observe/log.ts'
import type { ConfigurationMetrics, KeyMetrics, Metrics, StoreMetrics } from '../observe/metrics.ts'
import type { Policy } from '../policy/compile.ts'
import type { Prepared } from '../snapshot/load.ts'
import { certificateWarnings, type PresentedCertificate } from '../tls/checks.ts'

export function sayClientToken(log: Logger): (userId: string) => void {
  return onceByName((principal) =>
    log.warn({ principal }, 'this token belongs to a client, not a person: all callers who use it are one user'),
  )
}

/** Reports once for each kind of client which setting would let it speak to the upstream in the upstream's own transport. */
export function sayBridged(log: Logger): (client: Transport) => void {
  const settings: Readonly<Record<Transport, string>> = {
    'multi-route': 'set useSingleEndpoint={true} on its CopilotKitProvider, or mount the runtime with mode: "multi-route"',
    'single-route': 'set useSingleEndpoint={false} on its CopilotKitProvider, or mount the runtime with mode: "single-route"',
  }
  return onceByName((client) =>
    log.info(
      { from: client, to: client === 'multi-route' ? 'single-route' : 'multi-route' },
      `this client speaks the other transport, and the gateway translates: to make that unnecessary, ${settings[client as Transport]}`,
    ),
  )
}

const OBSERVING =
  'enforcement: observe (report-only). Threads are not protected: ownership violations are logged, and not refused'

/** Reports whether ownership violations pass (docs/contributing/invariants.md, 7). */
function sayEnforcement(enforcement: Enforcement, readiness: Readiness, metrics: ConfigurationMetrics, log: Logger): void {
  const observing = enforcement === 'observe'
  if (observing) log.warn({ enforcement }, OBSERVING)
  readiness.note('enforcement', observing ? OBSERVING : null)
  metrics.enforcement(enforcement)
}

function sayShadow(shadow: Policy | null, readiness: Readiness, metrics: ConfigurationMetrics, log: Logger): void {
  if (shadow !== null) log.warn({ file: shadow.file, policy: shadow.hash }, 'a shadow policy is evaluated but not enforced')
  readiness.note(
    'shadowPolicy',
    shadow === null ? null : `${basename(shadow.file)} is evaluated beside the policy, and not enforced`,
  )
  metrics.shadowPolicy(shadow === null ? 'off' : 'on')
}

export async function announce(
  { config: { enforcement }, shadow, certificates }: Pick<Prepared, 'config' | 'shadow' | 'certificates'>,
  { store, readiness, metrics, log }: NoticeParts,
): Promise<void> {
  sayEnforcement(enforcement, readiness, metrics.configuration, log)
  if (enforcement === 'enforce') await sayUnowned(store, log)
  sayShadow(shadow, readiness, metrics.configuration, log)
  metrics.tls.presented(certificates)
  metrics.configuration.loaded()
}

export interface NoticeParts {
  readonly store: Pick<ObservationStore, 'unowned'>
  readonly readiness: Readiness
  readonly metrics: Pick<Metrics, 'configuration' | 'tls'>
  readonly log: Logger
}

export function sayLostStore(store: ReturnType<typeof storeOf>, mounts: string, log: Logger): void {
  if (store.kind !== 'sqlite') return
  const fate = lostWith(store.file, mounts)
  if (fate === null) return
  log.warn({ store: store.file }, `the ownership table is in ${fate} and will be lost with it: store it on a volume`)
}

/** Reports how many unowned threads were seen under `observe`, now that it is over: other users may not claim them. */
async function sayUnowned(store: Pick<ObservationStore, 'unowned'>, log: Logger): Promise<void> {
  const threads = await store.unowned().catch((error: unknown) => {
    log.error({ err: error }, 'the threads observed so far could not be counted')
    return 0
  })
  if (threads === 0) return
  log.warn(
    { threads },
    'threads were seen under enforcement: observe and have no owner: with unknownThread: claim, a user who alone was seen on a thread may claim it; to assign the owners, run threadwarden threads import --from-observed',
  )
}

const LOOK_AT_CERTIFICATES_MS = 3_600_000
const DAY_MS = 86_400_000

/** Reports certificates that expire while the gateway runs, once a day. A reload reports them by itself. */
export function watchCertificates(
  certificates: () => readonly PresentedCertificate[],
  clock: () => number,
  log: Logger,
): () => void {
  const reported = new Map<string, number>()
  const look = (): void => {
    const now = clock()
    for (const { path, message, hint } of certificateWarnings(certificates(), now)) {
      if (now - (reported.get(message) ?? -Infinity) < DAY_MS) continue
      reported.set(message, now)
      log.warn({ path, detail: message, hint }, 'a certificate has to be renewed')
    }
  }
  const timer = setInterval(look, LOOK_AT_CERTIFICATES_MS)
  timer.unref()
  return () => clearInterval(timer)
}

const LOOK_AT_CLAIMS_MS = 15_000

/** Reports the unconfirmed claims in the metrics. A failed look counts as a failed operation of the store. */
export function watchClaims(
  store: Pick<RowStore, 'unconfirmed'>,
  metrics: Pick<StoreMetrics, 'unconfirmed'>,
  interval = LOOK_AT_CLAIMS_MS,
): () => void {
  const look = (): Promise<void> => store.unconfirmed().then(metrics.unconfirmed, () => {})
  let timer: NodeJS.Timeout | undefined
  let ended = false
  // The next look waits for a slow one.
  const go = async (): Promise<void> => {
    await look()
    if (!ended) timer = setTimeout(() => void go(), interval).unref()
  }
  void go()
  return () => {
    ended = true
    clearTimeout(timer)
  }
}

/** Fetches keys before tokens need them. /readyz names the issuers without keys. */
export function watchKeys(issuers: readonly Issuer[], readiness: Readiness, metrics: KeyMetrics, log: Logger): NodeJS.Timeout {
  const stale = new Set<string>()
  const look = (): void => {
    for (const { key, keys } of issuers) {
      readiness.set(`keys:${key}`, keys.ready() ? null : 'the keys of this issuer could not be fetched yet')
      if (keys.ready()) keys.renew()
      else void keys.find(undefined).then(() => keys.ready() && readiness.set(`keys:${key}`, null))
      // Keys from files were never fetched, and neither were those that are missing.
      if (Number.isFinite(keys.trustedFrom)) metrics.keysFetched(key, keys.trustedFrom)
      if (keys.stale() === stale.has(key)) continue
      if (keys.stale()) {
        metrics.keysStale(key)
        stale.add(key)
        log.warn({ issuer: key }, 'the issuer is unavailable: its last known keys stay valid for staleIfError')
      } else {
        metrics.keysFresh(key)
        stale.delete(key)
        log.info({ issuer: key }, 'the issuer is available again')
      }
    }
  }
  for (const { key } of issuers) metrics.keysFresh(key)
  look()
  return setInterval(look, 1000)
}
