/** Watches the configuration and reloads it while the gateway runs: it is validated and activated as a whole, or not at all. */
import { basename } from 'node:path'
import type { Outcome } from '../document/document.ts'
import { faultLine, type Fault } from '../document/fault.ts'
import { areSame, ABSENT, stateIn, type FileStates } from '../document/sources.ts'
import type { ReloadResult } from '../http/admin/admin.ts'
import type { Readiness } from '../http/listeners/readiness.ts'
import type { Logger } from '../observe/log.ts'
import type { ConfigurationMetrics } from '../observe/metrics.ts'
import type { Checked, Prepared } from './load.ts'
import { valueAt } from '../core/json/pointer.ts'
import type { Config } from '../config/schema.ts'
import { stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Numbered {
  readonly number: number
  readonly prepared: Checked
}

interface ReloadParts<Next extends Numbered> {
  readonly prepare: () => Outcome<Prepared>
  readonly isStopping: () => boolean
  readonly current: () => Numbered
  readonly make: (prepared: Prepared) => Promise<Next>
  readonly put: (next: Next) => Promise<void>
  readonly readiness: Readiness
  readonly metrics: ConfigurationMetrics
  readonly log: Logger
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

export interface LastReload extends ReloadResult {
  readonly cause: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

export function makeReload<Next extends Numbered>(parts: ReloadParts<Next>) {
  const { readiness, metrics, log } = parts

  let last: LastReload | null = null
  const ended = (cause: string, result: ReloadResult): ReloadResult => {
    last = { cause, at: parts.clock(), ...result }
    return result
  }

  const refused = (cause: string, faults: readonly string[], places: readonly string[] = faults): ReloadResult => {
    const { number } = parts.current()
    metrics.reloaded('refused', number)
    readiness.note(
      'reload',
      `the last configuration change was rejected; the previous configuration stays active. The log has the errors in ${places.join(', ')}`,
    )
    log.error({ cause, faults, generation: number }, 'the new configuration is invalid: the previous one stays active')
    return { outcome: 'refused', generation: number, faults }
  }

  const change = async (cause: string): Promise<ReloadResult> => {
    if (parts.isStopping()) return refused(cause, ['the gateway is shutting down'])
    const running = parts.current()
    let next: Next
    try {
      const prepared = parts.prepare()
      // Any client may read /readyz, so it only says where to look. The log and the admin API say what is wrong.
      if (!prepared.ok) return refused(cause, prepared.faults.map(faultLine), prepared.faults.map(placeOf))
      if (areSame(prepared.value.hashes, running.prepared.hashes)) {
        readiness.note('reload', null)
        metrics.reloaded('unchanged', running.number)
        log.info({ cause, generation: running.number }, 'the configuration has not changed')
        return { outcome: 'unchanged', generation: running.number, faults: [] }
      }
      const fixed = needsRestart(running.prepared.config, prepared.value.config)
      if (fixed.length > 0) {
        return refused(
          cause,
          fixed.map((key) => `${key} cannot change at runtime: revert it, or restart the gateway`),
          fixed,
        )
      }
      next = await parts.make(prepared.value)
      await parts.put(next)
    } catch (error) {
      // A file may have been removed a moment ago: the running configuration stays, because it is complete.
      return refused(cause, [error instanceof Error ? error.message : String(error)], ['the files'])
    }
    for (const warning of next.prepared.warnings) log.warn(warning, 'configuration')
    readiness.note('reload', null)
    metrics.reloaded('reloaded', next.number)
    const { config, policy } = next.prepared
    log.info(
      { cause, generation: next.number, policy: policy.hash, enforcement: config.enforcement },
      'the new configuration is active',
    )
    return { outcome: 'reloaded', generation: next.number, faults: [] }
  }

  let turn: Promise<void> = Promise.resolve()
  return {
    /** Changes run one at a time, in the order of the calls. `cause` is for the log. */
    reload: (cause: string): Promise<ReloadResult> => {
      const result = turn.then(async () => ended(cause, await change(cause)))
      turn = result.then(
        () => {},
        () => {},
      )
      return result
    },
    settled: (): Promise<void> => turn,
    last: (): LastReload | null => last,
  }
}

function placeOf({ file, line, path }: Fault): string {
  return [`${basename(file)}${line === undefined ? '' : `:${line}`}`, path].filter((part) => part !== '').join(' ')
}

/** JSON pointers of settings that are bound, opened or sized once. */
const FIXED = [
  '/listen/host',
  '/listen/port',
  '/listen/fd',
  '/listen/connections',
  '/listen/trustedProxies',
  '/health/host',
  '/health/port',
  '/admin/host',
  '/admin/port',
  '/admin/console',
  '/ownership/store',
  '/ownership/postgres',
  '/limits/headers',
  '/limits/bodiesInFlight',
  '/audit',
  '/workers',
] as const

/** JSON pointers of settings that may change, but not appear or disappear: they decide what kind of server listens. */
const SWITCHES = ['/listen/tls', '/listen/tls/clientCertificates'] as const

export function needsRestart(running: Config, next: Config): readonly string[] {
  const isOther = (pointer: string): boolean =>
    JSON.stringify(valueAt(running, pointer)) !== JSON.stringify(valueAt(next, pointer))
  const isSwitched = (pointer: string): boolean =>
    (valueAt(running, pointer) === undefined) !== (valueAt(next, pointer) === undefined)
  return [...FIXED.filter(isOther), ...SWITCHES.filter(isSwitched)].map((pointer) => pointer.slice(1).replaceAll('/', '.'))
}

const INTERVAL_MS = 500

/**
 * Watches files by target, time and size: this also notices renames and swapped links of a ConfigMap. Calls `onChange` when files
 * changed and then stayed the same for one interval. `known`: the states of the last reading.
 */
export function watchFiles(known: () => FileStates, onChange: () => Promise<unknown>): () => void {
  const over = new AbortController()
  const { signal } = over
  const watch = async (): Promise<void> => {
    let seen: string | null = null
    for (;;) {
      await sleep(INTERVAL_MS, undefined, { signal })
      const states = known()
      const now = JSON.stringify(await Promise.all([...states.keys()].map(stateNow)))
      if (signal.aborted) return
      if (now === seen && now !== JSON.stringify([...states.values()])) await onChange()
      seen = now
    }
  }
  watch().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  return () => over.abort()
}

async function stateNow(file: string): Promise<string> {
  return stat(file, { bigint: true }).then(stateIn, () => ABSENT)
}
