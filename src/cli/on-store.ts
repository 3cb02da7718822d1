/** What the commands that work on the store have in common: they read the configuration, and open what it names. */
import type { People } from '../tools/import-export/users.ts'
import type { Config } from '../config/schema.ts'
import { openStore } from '../store/open.ts'
import type { Prepared } from '../snapshot/load.ts'
import { StoreUnavailable, type Store } from '../store/port.ts'
import { complain, EXIT } from './command.ts'
import { loaded } from './loading.ts'

/** The options of all of them. */
export const STORE_OPTIONS = { config: { type: 'string' }, json: { type: 'boolean' } } as const

/** The values of these options. */
export interface StoreOptions {
  readonly config?: string | undefined
  readonly json?: boolean | undefined
}

/** A configuration with the store that it names, open. */
export interface Opened {
  readonly store: Store
  readonly prepared: Prepared
}

/**
 * Does something on the store of a configuration. One that is not there is not made: no gateway would look at it.
 * @returns the exit code: that of the work, or 1 with words on stderr where there is no configuration or no store
 * @throws UsageError without a configuration
 */
export async function onStore(options: StoreOptions, work: (opened: Opened) => Promise<number>): Promise<number> {
  const prepared = loaded(options.config, options.json === true)
  if (prepared === null) return EXIT.failure
  return withStore(prepared, { make: false }, (store) => work({ store, prepared }))
}

/**
 * Opens the store of a configuration, and says what is wrong with it.
 * @returns the exit code
 */
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

/** Who there can be under a configuration. */
export function peopleIn({ authentication }: Config): People {
  return { issuers: Object.keys(authentication.issuers), anonymous: authentication.mode !== 'required' }
}
