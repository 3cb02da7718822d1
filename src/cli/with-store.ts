/** Shared parts of the commands on the store: they read the configuration, and open the store that it names. */
import type { People } from '../tools/import-export/users.ts'
import type { Config } from '../config/schema.ts'
import { openStore } from '../store/open.ts'
import type { Prepared } from '../snapshot/load.ts'
import { StoreUnavailable, type Store } from '../store/port.ts'
import { complain, EXIT } from './command.ts'
import { loaded } from './input-files.ts'

export const STORE_OPTIONS = { config: { type: 'string' }, json: { type: 'boolean' } } as const

export interface StoreOptions {
  readonly config?: string | undefined
  readonly json?: boolean | undefined
}

export interface Opened {
  readonly store: Store
  readonly prepared: Prepared
}

/**
 * Works on the store of a configuration. It makes no missing store, because no gateway would read it.
 * @returns the exit code of the work, or 1 with a message on stderr if there is no configuration or no store
 * @throws UsageError without a configuration
 */
export async function onStore(options: StoreOptions, work: (opened: Opened) => Promise<number>): Promise<number> {
  const prepared = loaded(options.config, options.json === true)
  if (prepared === null) return EXIT.failure
  return withStore(prepared, { make: false }, (store) => work({ store, prepared }))
}

/** @returns the exit code of the work, or 1 with a message on stderr */
export async function withStore(
  { config }: Prepared,
  { make }: { readonly make: boolean },
  work: (store: Store) => Promise<number>,
): Promise<number> {
  try {
    const store = await openStore(config.ownership, { make })
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
