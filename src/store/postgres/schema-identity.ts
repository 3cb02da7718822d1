/**
 * Notices that a schema was lost and made again while it was in use. In the new one every thread is unowned, and another
 * process may have made it unnoticed. The store then asks nothing of it.
 * A restored backup has the history of the opened schema, and the store uses it again automatically.
 */
import { placeOf, type PostgresSettings } from '../../postgres/settings.ts'

export interface SchemaIdentity {
  /** @param made when the answering schema was made; null if it does not say: it is empty, or is being restored */
  note(made: number | null): void
  /** Calls a function whenever a schema with another history answers than before. */
  onChange(listener: () => void): void
  /** Why nothing may be asked of the schema; null if it is the opened one. */
  fault(): string | null
}

/** @param opened when the opened schema was made */
export function schemaIdentityFrom(opened: number, settings: PostgresSettings): SchemaIdentity {
  const other =
    `schema ${settings.schema} in ${placeOf(settings)} is another one than was opened: it was lost and made anew; ` +
    'put a backup back, or start all gateways again to go on with what is there'
  let last: number | null = opened
  const listeners: (() => void)[] = []
  return {
    note(made) {
      if (made === last) return
      last = made
      for (const listener of listeners) listener()
    },
    onChange: (listener) => void listeners.push(listener),
    fault: () => {
      if (last === opened) return null
      return last === null ? `schema ${settings.schema} in ${placeOf(settings)} is empty, or is being restored` : other
    },
  }
}
