/** SQL as SQLite writes it (src/store/sql/statement.ts). */
import type { ThreadKey } from '../port/thread.ts'
import type { Dialect } from '../sql/statement.ts'

export const SQLITE: Dialect = {
  threads: 'threads',
  grants: 'grants',
  observations: 'observations',
  revocations: 'revocations',
  versions: 'versions',
  secrets: 'secrets',
  asked: '(SELECT value ->> 0 AS scope, value ->> 1 AS thread_id FROM json_each(:keys)) AS asked',
  // A step that writes has the lock of the whole file.
  forUpdate: '',
  isUpstreamDeleted: 'upstream_deleted = 1',
  larger: 'max',
  smaller: 'min',
}

export function keysOf(keys: readonly ThreadKey[]): { readonly keys: string } {
  return { keys: JSON.stringify(keys.map(({ scope, threadId }) => [scope, threadId])) }
}
