/** The options of `threads import`, and the source that they name. */
import { accessSync, constants, existsSync, realpathSync, statSync, createReadStream } from 'node:fs'
import { FORMATS, formatOf, type Format, entriesOf, mappingOf } from '../../tools/import-export/source-file.ts'
import { isPointer } from '../../core/json/pointer.ts'
import { isAgentId } from '../../core/route/ids.ts'
import { CONFIG, flag, jsonFlag, QUIET, UsageError, value, type Values } from '../command.ts'
import { readToken } from '../input-files.ts'
import { addAbortSignal, type Readable } from 'node:stream'
import type { Entry, Reading } from '../../tools/import-export/entry.ts'
import { readMapping, type Source } from '../../tools/import-export/import.ts'
import { type Problem, SourceFault } from '../../tools/import-export/problem.ts'
import { scopeFault } from '../../tools/import-export/users.ts'
import {
  byField,
  byMapping,
  serverList,
  upstreamEntries,
  type Whose,
  upstreamList,
} from '../../tools/import-export/upstream-list.ts'
import { mountsOf, scopesIn, serverHeaders, type Mount } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import { TRANSPORTS, type Transport } from '../../core/route/transport.ts'
import type { Sources } from '../../document/sources.ts'
import { upstreamTls } from '../../tls/material.ts'
import { openUpstream } from '../../http/upstream/upstream.ts'
import type { Prepared } from '../../snapshot/load.ts'
import { knownUsersIn } from '../argument-values.ts'
import type { Progress } from '../with-progress.ts'
import type { Terminal } from '../terminal.ts'

/** A file, or `-` for stdin. */
interface NamedFile {
  readonly file: string
  readonly format: Format
}

type ImportTask =
  | ({ readonly kind: 'file' } & NamedFile)
  | {
      readonly kind: 'upstream'
      /** The source of the owners: a file, or a field of the list with the subject of an issuer's user. */
      readonly whose: NamedFile | { readonly field: string; readonly issuer: string }
      readonly token: string | null
      /** Empty for all agents. */
      readonly agentIds: readonly string[]
    }
  | { readonly kind: 'observed' }

export const OPTIONS = {
  config: CONFIG,
  format: value('csv|jsonl', 'the format of FILE or of the mapping (default: by the file extension)'),
  'from-upstream': flag('reads the list of threads of a runtime or a LangGraph server'),
  map: value('FILE', 'a mapping: a file with the columns thread and user'),
  'owner-field': value(
    'FIELD',
    "the field of the list with the owner's subject: a name such as createdById, or a JSON pointer such as /metadata/owner",
  ),
  issuer: value('KEY', 'the issuer of these subjects, by its id'),
  agent: { ...value('AGENT', 'only threads of this agent, as a managed runtime requires; may be repeated'), multiple: true },
  'token-file': value('FILE', 'a file with the credential for the upstream'),
  'from-observed': flag('confirms the users that were observed under enforcement: observe'),
  scope: value('KEY', "an upstream, by its key under upstreams or agents; '' for upstream"),
  'dry-run': flag('shows the result, and changes nothing'),
  report: value('FILE', 'writes every problem to this file, one JSON object per line; stderr shows the first 20'),
  quiet: QUIET,
  json: jsonFlag('{"dryRun", "complete", "read", "added", "same", "repeated", "conflicts", "invalid", "unmapped", "unlisted"}'),
} as const

export type ImportOptions = Values<typeof OPTIONS>

/** @throws UsageError for arguments that make no sense together */
export function importTask(values: ImportOptions, [file, ...more]: readonly string[]): ImportTask {
  const { 'from-upstream': upstream, 'from-observed': observed } = values
  if (more.length > 0 || Number(file !== undefined) + Number(upstream) + Number(observed) !== 1)
    throw new UsageError('name one source: FILE (or - for stdin), --from-upstream or --from-observed')
  if (!upstream) {
    for (const option of ['map', 'owner-field', 'issuer', 'agent', 'token-file'] as const)
      if (values[option] !== undefined) throw new UsageError(`--${option} goes with --from-upstream`)
  }
  if (file !== undefined) return { kind: 'file', ...fileNamed(file, values) }
  if (observed) {
    if (values.format !== undefined) throw new UsageError('--format goes with a file')
    return { kind: 'observed' }
  }
  const agentIds = values.agent ?? []
  for (const agentId of agentIds)
    if (!isAgentId(agentId)) throw new UsageError(`--agent ${JSON.stringify(agentId)} is not an agent id`)
  const tokenFile = values['token-file']
  return { kind: 'upstream', whose: whoseIn(values), agentIds, token: tokenFile === undefined ? null : readToken(tokenFile) }
}

function whoseIn(values: ImportOptions): Extract<ImportTask, { kind: 'upstream' }>['whose'] {
  const { map, 'owner-field': field, issuer, format } = values
  if ((map === undefined) === (field === undefined))
    throw new UsageError('name either --map FILE or --owner-field FIELD: the list alone does not name the owners')
  if (map !== undefined) {
    if (issuer !== undefined) throw new UsageError('--issuer goes with --owner-field')
    return fileNamed(map, values)
  }
  if (issuer === undefined || field === undefined || field === '')
    throw new UsageError('--owner-field FIELD goes with --issuer KEY')
  if (field.startsWith('/') && (field === '/' || !isPointer(field)))
    throw new UsageError(`--owner-field ${field} is not a JSON pointer: write /metadata/owner`)
  if (issuer.includes(':'))
    throw new UsageError(
      `--issuer ${issuer} is not an issuer id: name a key of authentication.issuers, without a colon and a subject`,
    )
  if (format !== undefined) throw new UsageError('--format goes with a file')
  return { field, issuer }
}

/** Fails before a store is opened or made. */
function fileNamed(file: string, { format, report }: ImportOptions): NamedFile {
  const named = formatNamed(format) ?? formatOf(file)
  if (named === null)
    throw new UsageError(`the format of ${file === '-' ? 'stdin' : file} is not known: name --format csv or jsonl`)
  if (file === '-') return { file, format: named }
  try {
    accessSync(file, constants.R_OK)
  } catch {
    throw new UsageError(`${file} ${existsSync(file) ? 'cannot be read: check its permissions' : 'does not exist'}`)
  }
  if (statSync(file).isDirectory()) throw new UsageError(`${file} is a folder`)
  if (report !== undefined && existsSync(report) && realpathSync(report) === realpathSync(file))
    throw new UsageError(`--report would overwrite ${file}`)
  return { file, format: named }
}

/** @throws UsageError for an unknown format */
export function formatNamed(text: string | undefined): Format | null {
  if (text === undefined) return null
  const format = FORMATS.find((one) => one === text)
  if (format === undefined) throw new UsageError(`--format must be ${FORMATS.join(' or ')}`)
  return format
}

interface SourceParts {
  readonly terminal: Terminal
  readonly progress: Progress
  readonly signal: AbortSignal
  readonly onProblem: (problem: Problem) => void
}

interface OpenSource extends Source {
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
  const mount = listerNamed(scope, config)
  if (mount.api === 'langgraph') requireServerOptions(task, mount)
  return upstreamSource(task, mount, sources, { ...reading, scope: mount.scope })
}

/** @throws UsageError for options that are for runtimes only */
function requireServerOptions({ whose, agentIds }: Extract<ImportTask, { kind: 'upstream' }>, { place }: Mount): void {
  const server = `${place.join('.')} is a LangGraph server`
  if (agentIds.length > 0) throw new UsageError(`--agent is for runtimes, and ${server}: its list has all threads`)
  if ('field' in whose && !whose.field.startsWith('/'))
    throw new UsageError(
      `--owner-field ${whose.field}: ${server}, so write a JSON pointer into a thread: /metadata/${whose.field}`,
    )
}

function fileSource({ file, format }: NamedFile, reading: Reading): SourceOpener {
  return (parts) => {
    const entries = entriesOf(bytesOf(file, parts), format, reading)
    return Promise.resolve({ entries, mapping: null, invalid: 0, close: () => Promise.resolve() })
  }
}

function upstreamSource(
  { whose, token, agentIds }: Extract<ImportTask, { kind: 'upstream' }>,
  { scope, api, url, tls, timeouts, basePath, transport, headers }: Mount,
  sources: Sources,
  reading: Reading,
): SourceOpener {
  return async (parts) => {
    const { signal, progress } = parts
    const read =
      'file' in whose ? await readMapping(mappingOf(bytesOf(whose.file, parts), whose.format, reading), parts) : undefined
    if (read === null) return null
    const upstream = openUpstream({ url, timeouts, tls: upstreamTls(tls, sources) })
    const asked = {
      upstream,
      basePath,
      headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...serverHeaders({ headers }) },
      signal,
    }
    const items =
      api === 'langgraph'
        ? serverList({ ...asked, ownerIn: 'field' in whose ? firstToken(whose.field) : null })
        : upstreamList({ ...asked, agentIds, named: isTransport(transport) ? transport : null })
    const mapping = read?.mapping ?? null
    const owner: Whose =
      mapping !== null ? byMapping(mapping) : 'field' in whose ? byField(whose.field, whose.issuer) : neverBoth()
    return {
      entries: counted(upstreamEntries(items, owner, scope, reading, read?.refusedIds), progress),
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
 * The upstream whose list of threads is read: by default the first runtime or LangGraph server.
 * @throws UsageError for an agent, which has no list
 */
function listerNamed(scope: string | undefined, config: Config): Mount {
  const named = importScope(scope, config)
  const mounts = mountsOf(config)
  const mount =
    scope === undefined
      ? mounts.find(({ agentId }) => agentId === null)
      : (mounts.find((one) => one.agentId === null && one.scope === named) ?? mounts.find((one) => one.scope === named))
  if (mount === undefined)
    throw new UsageError('--from-upstream: the configuration has only agents, and an agent has no list of threads')
  if (mount.agentId !== null)
    throw new UsageError(`--from-upstream: ${mount.place.join('.')} is an agent, and has no list of threads`)
  return mount
}

function isTransport(transport: Mount['transport']): transport is Transport {
  return (TRANSPORTS as readonly string[]).includes(transport)
}

/** The member of a thread that a JSON pointer begins with (RFC 6901 §4). */
function firstToken(pointer: string): string {
  return (pointer.split('/')[1] ?? '').replaceAll('~1', '/').replaceAll('~0', '~')
}

function neverBoth(): never {
  throw new Error('neither a mapping nor a field names the owners')
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
      `${stdin ? 'stdin' : file} could not be read completely: ${error instanceof Error ? error.message : 'it failed'}`,
    )
  }
}
