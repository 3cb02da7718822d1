/** Looks at the store of a configuration, of whichever kind, without making or changing anything. */
import { storeOf } from '../config/store-place.ts'
import type { Config } from '../config/schema.ts'
import { lookAtStore } from '../store/look.ts'
import { SCHEMA_VERSION } from '../store/sqlite/schema.ts'

/** What was seen, of which store. Schemas are numbers, counted by each kind of store for itself. */
export type Seen = {
  readonly place: string
  readonly latest: number
} & (
  | { readonly outcome: 'usable'; readonly schema: number }
  /** It is not there, and can be made. */
  | { readonly outcome: 'missing' }
  | { readonly outcome: 'unusable'; readonly message: string; readonly hint: string }
)

/** As long as a start waits for another process's lock, in milliseconds. */
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

/** What to call the store of a configuration if it is not there; else null. */
export async function missingStore({ ownership }: Config): Promise<string | null> {
  const { outcome, place } = await lookAt(ownership)
  return outcome === 'missing' ? place : null
}
