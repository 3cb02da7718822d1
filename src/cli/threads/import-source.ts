/** Opens the source of `threads import`. */
import { createReadStream, statSync } from 'node:fs'
import { addAbortSignal, type Readable } from 'node:stream'
import type { Entry, Reading } from '../../tools/import-export/entry.ts'
import { readMapping, type Source } from '../../tools/import-export/import.ts'
import { type Problem, SourceFault } from '../../tools/import-export/problem.ts'
import { entriesOf, mappingOf } from '../../tools/import-export/source-file.ts'
import { scopeFault } from '../../tools/import-export/users.ts'
import { byField, byMapping, upstreamEntries, type Whose, upstreamList } from '../../tools/import-export/upstream-list.ts'
import { mountsOf, scopesIn, serverHeaders, type Mount } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import type { Sources } from '../../document/sources.ts'
import { openUpstream } from '../../http/upstream/upstream.ts'
import type { Prepared } from '../../snapshot/load.ts'
import { knownUsersIn } from '../argument-values.ts'
import { UsageError } from '../command.ts'
import type { Progress } from '../progress.ts'
import type { Terminal } from '../terminal.ts'
import type { ImportTask, NamedFile } from './import-options.ts'

export interface SourceParts {
  readonly terminal: Terminal
  readonly progress: Progress
  readonly signal: AbortSignal
  readonly onProblem: (problem: Problem) => void
}

export interface OpenSource extends Source {
  readonly invalid: number
  close(): Promise<void>
}

/** @returns null if the signal came before the source was open */
export type SourceOpener = (parts: SourceParts) => Promise<OpenSource | null>

/** @throws UsageError for an unknown upstream, or one without a list */
export function sourceOf(
  task: Exclude<ImportTask, { kind: 'observed' }>,
  scope: string | undefined,
  { config, sources }: Prepared,
): SourceOpener {
  const reading = { users: knownUsersIn(config), scopes: scopesIn(config), now: Date.now() }
  if (task.kind === 'file') return fileSource(task, { ...reading, scope: importScope(scope, config) })
  const runtime = runtimeNamed(scope, config)
  return upstreamSource(task, runtime, sources, { ...reading, scope: runtime.scope })
}

function fileSource({ file, format }: NamedFile, reading: Reading): SourceOpener {
  return (parts) => {
    const entries = entriesOf(bytesOf(file, parts), format, reading)
    return Promise.resolve({ entries, mapping: null, invalid: 0, close: () => Promise.resolve() })
  }
}

function upstreamSource(
  { whose, token, agentIds }: Extract<ImportTask, { kind: 'upstream' }>,
  { scope, url, ca, timeouts, basePath, transport, headers }: Mount,
  sources: Sources,
  reading: Reading,
): SourceOpener {
  return async (parts) => {
    const { signal, progress } = parts
    const read =
      'file' in whose ? await readMapping(mappingOf(bytesOf(whose.file, parts), whose.format, reading), parts) : undefined
    if (read === null) return null
    const upstream = openUpstream({ url, timeouts, ...(ca === undefined ? {} : { ca: sources.text(ca) }) })
    const items = upstreamList({
      upstream,
      basePath,
      headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...serverHeaders({ headers }) },
      named: transport === 'auto' || transport === 'endpoint' ? null : transport,
      agentIds,
      signal,
    })
    const mapping = read?.mapping ?? null
    const owner: Whose =
      mapping !== null ? byMapping(mapping) : 'field' in whose ? byField(whose.field, whose.issuer) : neverBoth()
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
}

/**
 * The scope of imported rows that do not name theirs. The configuration has to have it: an owner that no user can reach must not
 * look valid.
 * @returns null if there is no `upstream` and the option names no other: each row has to name its own
 * @throws UsageError for a scope that the configuration does not have
 */
function importScope(scope: string | undefined, config: Config): string | null {
  const scopes = scopesIn(config)
  if (scope === undefined) return scopes.includes('') ? '' : null
  const fault = scopeFault(scope, scopes)
  if (fault !== null) throw new UsageError(`--scope ${JSON.stringify(scope)}: ${fault}`)
  return scope
}

/**
 * The runtime whose list of threads is read: by default the first.
 * @throws UsageError for an agent, which has no list
 */
function runtimeNamed(scope: string | undefined, config: Config): Mount {
  const named = importScope(scope, config)
  const mounts = mountsOf(config)
  const mount =
    scope === undefined
      ? mounts.find(({ agentId }) => agentId === null)
      : (mounts.find((one) => one.agentId === null && one.scope === named) ?? mounts.find((one) => one.scope === named))
  if (mount === undefined)
    throw new UsageError('--from-upstream: the configuration has agents alone, and an agent has no list of threads')
  if (mount.agentId !== null)
    throw new UsageError(`--from-upstream: ${mount.place.join('.')} is an agent, and has no list of threads`)
  return mount
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

async function* bytesOf(file: string, { terminal, progress, signal }: SourceParts): AsyncGenerator<Uint8Array> {
  const stdin = file === '-'
  const from: Readable = stdin ? terminal.stdin : createReadStream(file)
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
