/** Opens the store of a configuration for a command. */
import type { People } from '../tools/import-export/users.ts'
import type { Config } from '../config/schema.ts'
import { openStore } from '../store/open.ts'
import type { Prepared } from '../snapshot/load.ts'
import { StoreUnavailable, type Store } from '../store/port.ts'
import { complain, EXIT } from './command.ts'
import { loadConfig, type ConfigOptions } from './input-files.ts'

export interface Opened {
  readonly store: Store
  readonly prepared: Prepared
}

/**
 * Works on an existing store: no gateway would read one that a command made.
 * @returns the exit code of the work, or 1 with a message on stderr if there is no configuration or no store
 * @throws UsageError without a configuration
 */
export async function onStore(options: ConfigOptions, work: (opened: Opened) => Promise<number>): Promise<number> {
  const prepared = loadConfig(options)
  if (prepared === null) return EXIT.failure
  return withStore(prepared, { make: false }, (store) => work({ store, prepared }))
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

export function peopleIn({ authentication }: Config): People {
  return { issuers: Object.keys(authentication.issuers), anonymous: authentication.mode !== 'required' }
}
