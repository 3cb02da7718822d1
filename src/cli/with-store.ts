/** Opens or inspects the store of a configuration for a command. */
import { scopeFault } from '../tools/import-export/users.ts'
import { DATA_FOLDER } from '../config/data-folder.ts'
import { scopesIn } from '../config/mounts.ts'
import type { Config } from '../config/schema.ts'
import { openStore } from '../store/open.ts'
import type { Prepared } from '../snapshot/load.ts'
import { StoreUnavailable, type StoreState } from '../store/port/state.ts'
import type { Store } from '../store/port/store.ts'
import type { ThreadKey } from '../store/port/thread.ts'
import { CommandFailed, UsageError } from './command.ts'
import { loadConfig, type ConfigOptions } from './input-files.ts'
import { complain, type Terminal } from './terminal.ts'
import { storeOf } from '../config/store-place.ts'
import { inspectSqlite, type SqliteInspection } from '../store/inspect.ts'
import { SCHEMA_VERSION } from '../store/sqlite/schema.ts'

interface Opened {
  readonly store: Store
  readonly prepared: Prepared
  /** The scope that `--scope` names; undefined for all scopes. */
  readonly scope: string | undefined
  /**
   * The thread in that scope, or by default in that of `upstream`.
   * @throws UsageError for neither
   */
  readonly keyOf: (threadId: string) => ThreadKey
}

/**
 * Works on an existing store: no gateway would read one that a command made.
 * @returns the exit code of the work
 * @throws UsageError without a configuration, and for an unknown scope; CommandFailed without a valid configuration or a store
 */
export async function onStore(
  terminal: Terminal,
  options: ConfigOptions & { readonly scope?: string },
  work: (opened: Opened) => Promise<number>,
): Promise<number> {
  const prepared = loadConfig(terminal, options)
  const { config } = prepared
  return withStore(terminal, prepared, { make: false }, async (store) => {
    const scope = await existingScope(options.scope, config, store)
    return work({ store, prepared, scope, keyOf: (threadId) => ({ scope: scope ?? usualScope(config), threadId }) })
  })
}

/** @returns the exit code of the work. @throws CommandFailed if the store is missing or fails */
export async function withStore(
  terminal: Terminal,
  prepared: Prepared,
  options: { readonly make: boolean },
  work: (store: Store) => Promise<number>,
): Promise<number> {
  const { config } = prepared
  sayDefaultStore(terminal, prepared)
  try {
    const store = await openStore(config.ownership, options)
    try {
      return await work(store)
    } finally {
      await store.close()
    }
  } catch (error) {
    throw error instanceof StoreUnavailable ? new CommandFailed(`error: ${error.message}`) : error
  }
}

/** The gateway may run in another environment, and use another store: a revocation there would have no effect. */
export function sayDefaultStore(terminal: Terminal, { config: { ownership }, isStorePlaced }: Prepared): void {
  if (isStorePlaced) return
  const isSet = (terminal.env[DATA_FOLDER] ?? '') !== ''
  const why = isSet ? `in ${DATA_FOLDER}` : `${DATA_FOLDER} is not set: if it is set for the gateway, set it here too`
  complain(terminal, `store: ${ownership.store} (the default, ${why})`)
}

/**
 * A scope of the configuration, or one with rows in the table, because its upstream was removed or got another key.
 * @returns undefined for all scopes
 * @throws UsageError for any other scope
 */
async function existingScope(
  scope: string | undefined,
  config: Config,
  store: Pick<StoreState, 'isEmpty'>,
): Promise<string | undefined> {
  const fault = scope === undefined ? null : scopeFault(scope, scopesIn(config))
  if (scope === undefined || fault === null || !(await store.isEmpty(scope))) return scope
  throw new UsageError(`--scope ${JSON.stringify(scope)}: ${fault} (and the ownership table has no threads of it)`)
}

/** @throws UsageError without `upstream`: a wrong guess would change the thread of another user */
function usualScope(config: Config): string {
  const scopes = scopesIn(config)
  if (!scopes.includes('')) throw new UsageError(`--scope KEY is missing: name one of ${scopes.join(', ')}`)
  return ''
}

/** Each kind of store counts its schemas from 1. */
export type Inspected = {
  readonly place: string
  readonly latest: number
} & (
  | { readonly outcome: 'usable'; readonly schema: number }
  | { readonly outcome: 'missing' }
  | { readonly outcome: 'unusable'; readonly message: string; readonly hint: string }
)

/** How long a starting gateway waits for the lock of another process, in milliseconds. */
const LOCK_WAIT = 5000

/** @param file an absolute path */
export function inspectFile(file: string): SqliteInspection {
  return inspectSqlite(file, LOCK_WAIT)
}

export async function inspectStore(ownership: Config['ownership']): Promise<Inspected> {
  const named = storeOf(ownership)
  if (named.kind === 'sqlite') return { place: named.file, latest: SCHEMA_VERSION, ...inspectFile(named.file) }
  const { inspectPostgres } = await import('../store/postgres/inspect.ts')
  const { MIGRATIONS } = await import('../store/postgres/schema.ts')
  const latest = MIGRATIONS.length
  const seen = await inspectPostgres(named.settings)
  return seen.outcome === 'usable' ? { ...seen, latest, schema: latest - seen.behind } : { ...seen, latest }
}

/** The name of the configured store if it does not exist; else null. */
export async function missingStore({ ownership }: Config): Promise<string | null> {
  const { outcome, place } = await inspectStore(ownership)
  return outcome === 'missing' ? place : null
}
