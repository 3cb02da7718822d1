/**
 * Detects that a schema was lost and recreated while in use. All threads are unowned in the new one, so the store stops using it.
 * A restored backup has the history of the opened schema, and the store uses it again.
 */
import { placeOf, type PostgresSettings } from '../../postgres/settings.ts'

export interface SchemaIdentity {
  /** @param made when the answering schema was created; null if it does not say: it is empty, or is being restored */
  note(made: number | null): void
  onChange(listener: () => void): void
  /** Why the schema must not be used; null if it is the opened one. */
  fault(): string | null
}

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
