/** Opens the source of `threads import`. */
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { addAbortSignal, type Readable } from 'node:stream'
import type { Entry, Reading } from '../../tools/import-export/entry.ts'
import { readMapping, type Source } from '../../tools/import-export/import.ts'
import type { Problem } from '../../tools/import-export/problem.ts'
import { entriesOf, mappingOf } from '../../tools/import-export/source-file.ts'
import { SourceFault } from '../../tools/import-export/source-line.ts'
import { byField, byMapping, upstreamEntries, type Whose } from '../../tools/import-export/upstream-entries.ts'
import { upstreamList } from '../../tools/import-export/upstream-list.ts'
import { serverHeaders, type Mount } from '../../config/mounts.ts'
import { openUpstream } from '../../http/upstream/upstream.ts'
import type { Progress } from '../progress.ts'
import type { ImportTask, NamedFile } from './import-options.ts'

export interface SourceParts {
  readonly reading: Reading
  readonly progress: Progress
  readonly signal: AbortSignal
  readonly onProblem: (problem: Problem) => void
}

export interface OpenSource extends Source {
  readonly invalid: number
  close(): Promise<void>
}

export function fileSource({ file, format }: NamedFile, parts: SourceParts): OpenSource {
  const entries = entriesOf(bytesOf(file, parts), format, parts.reading)
  return { entries, mapping: null, invalid: 0, close: () => Promise.resolve() }
}

/** @returns null if the signal came before the mapping was read */
export async function upstreamSource(
  { whose, token, agentIds }: Extract<ImportTask, { kind: 'upstream' }>,
  { scope, url, ca, timeouts, basePath, transport, headers }: Mount,
  parts: SourceParts,
): Promise<OpenSource | null> {
  const { signal, progress, reading, onProblem } = parts
  const read =
    'file' in whose
      ? await readMapping(mappingOf(bytesOf(whose.file, parts), whose.format, reading), { signal, onProblem })
      : undefined
  if (read === null) return null
  const upstream = openUpstream({ url, timeouts, ...(ca === undefined ? {} : { ca: readFileSync(ca, 'utf8') }) })
  const items = upstreamList({
    upstream,
    basePath,
    headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...serverHeaders({ headers }) },
    named: transport === 'auto' || transport === 'endpoint' ? null : transport,
    agentIds,
    signal,
  })
  const mapping = read?.mapping ?? null
  const owner: Whose = mapping !== null ? byMapping(mapping) : 'field' in whose ? byField(whose.field, whose.issuer) : neverBoth()
  return {
    entries: counted(upstreamEntries(items, owner, scope, reading), progress),
    mapping,
    invalid: read?.invalid ?? 0,
    close: async () => {
      mapping?.close()
      await upstream.close()
    },
  }
}

function neverBoth(): never {
  throw new Error('neither a mapping nor a field says whose threads are')
}

async function* counted(entries: AsyncIterable<Entry | Problem>, progress: Progress): AsyncGenerator<Entry | Problem> {
  progress.begin('threads listed', null)
  let count = 0
  for await (const entry of entries) {
    count += 1
    progress.at(count)
    yield entry
  }
}

async function* bytesOf(file: string, { progress, signal }: SourceParts): AsyncGenerator<Uint8Array> {
  const stdin = file === '-'
  const from: Readable = stdin ? process.stdin : createReadStream(file)
  addAbortSignal(signal, from)
  // A pipe or a device reports no size.
  progress.begin('bytes read', stdin ? null : statSync(file).size || null)
  let count = 0
  try {
    for await (const chunk of from as AsyncIterable<Uint8Array>) {
      count += chunk.length
      progress.at(count)
      yield chunk
    }
  } catch (error) {
    throw new SourceFault(
      `${stdin ? 'stdin' : file} could not be read to its end: ${error instanceof Error ? error.message : 'it failed'}`,
    )
  }
}
