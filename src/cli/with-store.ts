/** Opens the store of a configuration for a command. */
import { scopeFault } from '../tools/import-export/users.ts'
import { scopesIn } from '../config/mounts.ts'
import type { Config } from '../config/schema.ts'
import { openStore } from '../store/open.ts'
import type { Prepared } from '../snapshot/load.ts'
import { StoreUnavailable, type StoreState } from '../store/port/state.ts'
import type { Store } from '../store/port/store.ts'
import type { ThreadKey } from '../store/port/thread.ts'
import { CommandFailed, UsageError } from './command.ts'
import { loadConfig, type ConfigOptions } from './input-files.ts'
import type { Terminal } from './terminal.ts'

export interface Opened {
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
  return withStore(prepared, { make: false }, async (store) => {
    const scope = await existingScope(options.scope, config, store)
    return work({ store, prepared, scope, keyOf: (threadId) => ({ scope: scope ?? usualScope(config), threadId }) })
  })
}

/** @returns the exit code of the work. @throws CommandFailed if the store is missing or fails */
export async function withStore(
  { config }: Prepared,
  options: { readonly make: boolean },
  work: (store: Store) => Promise<number>,
): Promise<number> {
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
  throw new UsageError(`--scope ${JSON.stringify(scope)}: ${fault}, and the table has no thread of such a one`)
}

/** @throws UsageError without `upstream`: a wrong guess would change the thread of another user */
function usualScope(config: Config): string {
  const scopes = scopesIn(config)
  if (!scopes.includes('')) throw new UsageError(`--scope KEY is missing: the configuration has ${scopes.join(', ')}`)
  return ''
}
