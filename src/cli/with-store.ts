/** Opens the store of a configuration for a command. */
import { openStore } from '../store/open.ts'
import type { Prepared } from '../snapshot/load.ts'
import { StoreUnavailable, type Store, type ThreadKey } from '../store/port.ts'
import { EXIT } from './command.ts'
import { complain } from './terminal.ts'
import { loadConfig, type ConfigOptions } from './input-files.ts'
import { existingScope, usualScope } from './scope-option.ts'

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

interface StoreOptions extends ConfigOptions {
  readonly scope?: string
}

/**
 * Works on an existing store: no gateway would read one that a command made.
 * @returns the exit code of the work, or 1 with a message on stderr if there is no configuration or no store
 * @throws UsageError without a configuration, and for an unknown scope
 */
export async function onStore(options: StoreOptions, work: (opened: Opened) => Promise<number>): Promise<number> {
  const prepared = loadConfig(options)
  if (prepared === null) return EXIT.failure
  const { config } = prepared
  return withStore(prepared, { make: false }, async (store) => {
    const scope = await existingScope(options.scope, config, store)
    return work({ store, prepared, scope, keyOf: (threadId) => ({ scope: scope ?? usualScope(config), threadId }) })
  })
}

/** @returns the exit code of the work, or 1 with a message on stderr */
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
    if (!(error instanceof StoreUnavailable)) throw error
    complain(`error: ${error.message}`)
    return EXIT.failure
  }
}
