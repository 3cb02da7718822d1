/** Reads files that name the owners of threads: CSV with a header, or a JSON object in each line. */
import { COLUMNS, readEntry, type Column, type Entry, type Reading } from './entry.ts'
import { csvLines } from './csv-lines.ts'
import { jsonLines } from './json-lines.ts'

export type Format = 'csv' | 'jsonl'

export const FORMATS: readonly Format[] = ['csv', 'jsonl']

const REQUIRED = ['thread', 'user'] as const

/** The format that a file name implies, or null. */
export function formatOf(file: string): Format | null {
  if (/\.csv$/i.test(file)) return 'csv'
  return /\.(?:jsonl|ndjson)$/i.test(file) ? 'jsonl' : null
}

/** @throws SourceFault if its lines cannot be told apart */
export async function* entriesOf(
  bytes: AsyncIterable<Uint8Array>,
  format: Format,
  reading: Reading,
  columns: readonly Column[] = COLUMNS,
): AsyncGenerator<Entry> {
  for await (const read of format === 'csv' ? csvLines(bytes, columns, REQUIRED) : jsonLines(bytes, columns)) {
    if ('fault' in read)
      yield { kind: 'fault', line: read.line, reason: read.fault, scope: '', threadId: null, refusedId: null, owner: null }
    else yield readEntry(read.line, read.fields, reading)
  }
}

export function mappingOf(bytes: AsyncIterable<Uint8Array>, format: Format, reading: Reading): AsyncGenerator<Entry> {
  return entriesOf(bytes, format, reading, REQUIRED)
}
