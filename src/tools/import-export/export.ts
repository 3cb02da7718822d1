/** Rows of the ownership table as lines of a file, in the form that an import takes. */
import { NOBODY, type RowFilter, type ThreadAdministration, type ThreadKey, type ThreadRow } from '../../store/port.ts'
import { asText } from './csv-formulas.ts'
import { COLUMNS, NOBODY_WORD, type Column } from './entry.ts'
import type { Retry } from './retry.ts'
import type { Format } from './source-file.ts'

/** Rows that are asked for at once. */
const PAGE = 1000

/** A row as files and lists show it; what it does not have is null. Of `upstream` it has no scope. */
export type ShownRow = Readonly<Record<Exclude<Column, 'scope'>, string | boolean | null>> & { readonly scope?: string }

/** A row for operators. Times as RFC 3339 writes them; the user is `nobody` where the owner was taken away. */
export function shownRow(row: ThreadRow): ShownRow {
  return {
    thread: row.threadId,
    user: row.owner === NOBODY ? NOBODY_WORD : row.owner,
    agent: row.agentId === '' ? null : row.agentId,
    name: row.name,
    archived: row.archived,
    created: timeText(row.createdAt),
    used: timeText(row.lastUsedAt),
    deleted: row.deletedAt === null ? null : timeText(row.deletedAt),
    ...(row.scope === '' ? {} : { scope: row.scope }),
  }
}

export function timeText(time: number): string {
  return new Date(time).toISOString()
}

/**
 * All rows that a filter names, in the order of their keys.
 * @throws StoreUnavailable
 */
export async function* rowsOf(
  store: Pick<ThreadAdministration, 'threads'>,
  filter: RowFilter,
  retry: Retry,
): AsyncGenerator<ThreadRow> {
  let after: ThreadKey | null = null
  for (;;) {
    const asked: ThreadKey | null = after
    const page: readonly ThreadRow[] = await retry(() => store.threads(filter, asked, PAGE))
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return
    after = { scope: last.scope, threadId: last.threadId }
  }
}

/** True if there are rows of other scopes than `''` among those that a filter names. */
export async function hasScopes(store: Pick<ThreadAdministration, 'threads'>, filter: RowFilter, retry: Retry): Promise<boolean> {
  // Rows come in the order of their scopes, and every key comes behind a space.
  return (await retry(() => store.threads(filter, { scope: ' ', threadId: '' }, 1))).length > 0
}

/** What rows may have that most don't: the time of a tombstone, and a scope. */
export interface ExportedColumns {
  readonly deleted: boolean
  readonly scope: boolean
}

/** The lines of a file, with these columns. */
export async function* exportLines(
  rows: AsyncIterable<ThreadRow>,
  format: Format,
  { deleted, scope }: ExportedColumns,
): AsyncGenerator<string> {
  const columns = COLUMNS.filter((column) => (deleted || column !== 'deleted') && (scope || column !== 'scope'))
  if (format === 'csv') yield `${columns.join(',')}\n`
  for await (const row of rows) {
    const shown = shownRow(row)
    if (format === 'csv') yield `${columns.map((column) => csvField(shown[column] ?? null)).join(',')}\n`
    else yield `${JSON.stringify(Object.fromEntries(columns.map((column) => [column, shown[column]])))}\n`
  }
}

/** RFC 4180 §2: what has quotes, commas or ends of lines in it is quoted, and quotes are doubled. */
function csvField(value: string | boolean | null): string {
  const text = value === null ? '' : asText(String(value))
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
