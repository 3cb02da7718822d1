/** Sources of rows for tests: text that comes in pieces, and what is read of it. */
import { entriesOf, type Format } from '../../src/tools/import-export/source-file.ts'
import type { Entry, Reading } from '../../src/tools/import-export/entry.ts'

/** When everything was read. */
export const NOW = Date.parse('2026-06-01T00:00:00Z')

/** Two issuers, and nobody anonymous. */
export const READING: Reading = {
  users: { issuers: ['corp', 'staff'], anonymous: false },
  scopes: ['', 'legal', 'research'],
  scope: '',
  now: NOW,
}

/** Bytes in pieces of a few, so that no piece ends where a line does. */
export async function* inPieces(text: string | Uint8Array, size = 7): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

/** All that is read of a file. */
export async function read(text: string | Uint8Array, format: Format, reading = READING): Promise<readonly Entry[]> {
  const entries: Entry[] = []
  for await (const entry of entriesOf(inPieces(text), format, reading)) entries.push(entry)
  return entries
}

/** What is wrong with each line that is wrong, as `line: reason`. */
export async function faults(text: string | Uint8Array, format: Format, reading = READING): Promise<readonly string[]> {
  return (await read(text, format, reading)).flatMap((entry) =>
    entry.kind === 'fault' ? [`${entry.line}: ${entry.reason}`] : [],
  )
}

/** What is read of a line with these keys. */
export async function one(fields: Readonly<Record<string, unknown>>, reading = READING): Promise<Entry> {
  const [entry, ...more] = await read(JSON.stringify(fields), 'jsonl', reading)
  if (entry === undefined || more.length > 0) throw new Error('one line is one entry')
  return entry
}
