/**
 * Notices that a schema was lost and made anew while it was in use: in the new one every thread is nobody's, and another
 * process may have made it without a thought. Nothing is asked of it then. A backup that is put back has the past of the one
 * that was opened, and is used again by itself.
 */
import { placeOf, type PostgresSettings } from '../../postgres/settings.ts'

export interface SchemaIdentity {
  /**
   * Takes in whose past answers now.
   * @param made when the schema was made that answers; null if it does not say: it is empty, or is just being restored
   */
  see(made: number | null): void
  /** Calls a function whenever another past answers than before. */
  onChange(listener: () => void): void
  /** Why nothing may be asked of it; null if it is the one that was opened. */
  fault(): string | null
}

/** @param opened when the schema was made that was opened */
export function schemaIdentityFrom(opened: number, settings: PostgresSettings): SchemaIdentity {
  const other =
    `schema ${settings.schema} in ${placeOf(settings)} is another one than was opened: it was lost and made anew; ` +
    'put a backup back, or start all gateways again to go on with what is there'
  let last: number | null = opened
  const listeners: (() => void)[] = []
  return {
    see(made) {
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
