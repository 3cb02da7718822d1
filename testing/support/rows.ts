/** What stands in the ownership table, read past the gateway. */
import { join } from 'node:path'
import Database from 'better-sqlite3'

/** A row. */
export interface Row {
  readonly thread_id: string
  readonly user_id: string
  readonly name: string | null
  readonly deleted_at: number | null
  readonly provisional: number
  readonly pending: number
}

/** All rows of the store in a gateway's folder, by thread id. */
export function rows(folder: string): readonly Row[] {
  const database = new Database(join(folder, 'ownership.db'), { readonly: true })
  try {
    return database
      .prepare<[], Row>(
        'SELECT thread_id, user_id, name, deleted_at, provisional, open_runs AS pending FROM threads ORDER BY thread_id',
      )
      .all()
  } finally {
    database.close()
  }
}

/** The threads and their owners, as `thread=user`. */
export function owners(folder: string): readonly string[] {
  return rows(folder).map((row) => `${row.thread_id}=${row.user_id}`)
}
