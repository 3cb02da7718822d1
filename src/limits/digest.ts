/** The name of a counter in a database. Ids have any length and characters, and counters must not store a user's id. */
import { createHash } from 'node:crypto'

export function digestOf(who: string): string {
  return createHash('sha256').update(who).digest('base64url')
}
