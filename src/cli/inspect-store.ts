/** Inspects the store of a configuration, of either kind, without a change to it. */
import { storeOf } from '../config/store-place.ts'
import type { Config } from '../config/schema.ts'
import { lookAtStore } from '../store/look.ts'
import { SCHEMA_VERSION } from '../store/sqlite/schema.ts'

/** What was found, in which store. Schemas are numbers; each kind of store counts its own. */
export type Seen = {
  readonly place: string
  readonly latest: number
} & (
  | { readonly outcome: 'usable'; readonly schema: number }
  | { readonly outcome: 'missing' }
  | { readonly outcome: 'unusable'; readonly message: string; readonly hint: string }
)

/** As long as a start of the gateway waits for another process's lock, in milliseconds. */
const PATIENCE = 5000

export async function lookAt(ownership: Config['ownership']): Promise<Seen> {
  const named = storeOf(ownership)
  if (named.kind === 'sqlite') return { place: named.file, latest: SCHEMA_VERSION, ...lookAtStore(named.file, PATIENCE) }
  const { lookAtPostgres } = await import('../store/postgres/look.ts')
  const { MIGRATIONS } = await import('../store/postgres/schema.ts')
  const latest = MIGRATIONS.length
  const seen = await lookAtPostgres(named.settings)
  return seen.outcome === 'usable' ? { ...seen, latest, schema: latest - seen.behind } : { ...seen, latest }
}

/** The name of the configured store if it does not exist; else null. */
export async function missingStore({ ownership }: Config): Promise<string | null> {
  const { outcome, place } = await lookAt(ownership)
  return outcome === 'missing' ? place : null
}
