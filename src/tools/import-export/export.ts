/** Formats rows of the ownership table as lines of a file that an import can read. */
import type { RowFilter, RowStore, ThreadRow } from '../../store/port/administration.ts'
import type { ThreadKey } from '../../store/port/thread.ts'
import { asText } from './csv-lines.ts'
import { COLUMNS } from './entry.ts'
import { ownerWord } from './problem.ts'
import type { Retry } from './retry.ts'
import type { Format } from './source-file.ts'

const PAGE = 1000

/** A row as files and lists show it: missing values are null, times in RFC 3339 form. A row of `upstream` has no scope. */
export function shownRow(row: ThreadRow) {
  return {
    thread: row.threadId,
    user: ownerWord(row.owner),
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

/** In the order of their keys. @throws StoreUnavailable */
export async function* rowsOf(store: Pick<RowStore, 'threads'>, filter: RowFilter, retry: Retry): AsyncGenerator<ThreadRow> {
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

export async function hasScopes(store: Pick<RowStore, 'threads'>, filter: RowFilter, retry: Retry): Promise<boolean> {
  // Rows come in the order of their scopes, and every scope key sorts after a space.
  return (await retry(() => store.threads(filter, { scope: ' ', threadId: '' }, 1))).length > 0
}

export async function* exportLines(
  rows: AsyncIterable<ThreadRow>,
  format: Format,
  { deleted, scope }: { readonly deleted: boolean; readonly scope: boolean },
): AsyncGenerator<string> {
  const columns = COLUMNS.filter((column) => (deleted || column !== 'deleted') && (scope || column !== 'scope'))
  if (format === 'csv') yield `${columns.join(',')}\n`
  for await (const row of rows) {
    const shown = shownRow(row)
    if (format === 'csv') yield `${columns.map((column) => csvField(shown[column] ?? null)).join(',')}\n`
    else yield `${JSON.stringify(Object.fromEntries(columns.map((column) => [column, shown[column]])))}\n`
  }
}

/** RFC 4180 §2: a field with quotes, commas or line ends is quoted, and quotes are doubled. */
function csvField(value: string | boolean | null): string {
  const text = value === null ? '' : asText(String(value))
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
