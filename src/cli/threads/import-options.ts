/** Reads the arguments of `threads import`. */
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { FORMATS, formatOf, type Format } from '../../tools/import-export/source-file.ts'
import { isAgentId } from '../../core/route/ids.ts'
import { readArguments, UsageError } from '../command.ts'
import { tokenFrom } from '../input-files.ts'
import { STORE_OPTIONS } from '../with-store.ts'
import { SCOPE_OPTION } from '../scope-option.ts'

/** A file, or `-` for stdin. */
export interface NamedFile {
  readonly file: string
  readonly format: Format
}

export type ImportTask =
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

const OPTIONS = {
  ...STORE_OPTIONS,
  ...SCOPE_OPTION,
  format: { type: 'string' },
  'dry-run': { type: 'boolean' },
  report: { type: 'string' },
  quiet: { type: 'boolean' },
  'from-upstream': { type: 'boolean' },
  'from-observed': { type: 'boolean' },
  map: { type: 'string' },
  'owner-field': { type: 'string' },
  issuer: { type: 'string' },
  agent: { type: 'string', multiple: true },
  'token-file': { type: 'string' },
} as const

export interface ImportWishes {
  readonly task: ImportTask
  readonly config: string | undefined
  readonly scope: string | undefined
  readonly json: boolean
  readonly dryRun: boolean
  readonly quiet: boolean
  readonly report: string | null
}

type Values = ReturnType<typeof readArguments<typeof OPTIONS>>['values']

/** @throws UsageError for arguments that make no sense together */
export function importWishes(args: readonly string[]): ImportWishes {
  const { values, positionals } = readArguments(args, OPTIONS)
  const task = taskOf(values, positionals)
  const report = values.report ?? null
  for (const read of filesOf(task)) {
    if (report !== null && isSameFile(report, read)) throw new UsageError(`--report would be written over ${read}`)
  }
  return {
    task,
    config: values.config,
    scope: values.scope,
    json: values.json === true,
    dryRun: values['dry-run'] === true,
    quiet: values.quiet === true,
    report,
  }
}

function taskOf(values: Values, [file, ...more]: readonly string[]): ImportTask {
  const upstream = values['from-upstream'] === true
  const observed = values['from-observed'] === true
  if (more.length > 0 || Number(file !== undefined) + Number(upstream) + Number(observed) !== 1)
    throw new UsageError('name one source: FILE (or - for stdin), --from-upstream or --from-observed')
  if (!upstream) {
    for (const option of ['map', 'owner-field', 'issuer', 'agent', 'token-file'] as const)
      if (values[option] !== undefined) throw new UsageError(`--${option} goes with --from-upstream`)
  }
  if (file !== undefined) return { kind: 'file', ...fileNamed(file, values.format) }
  if (observed) {
    if (values.format !== undefined) throw new UsageError('--format goes with a file')
    return { kind: 'observed' }
  }
  const agentIds = values.agent ?? []
  for (const agentId of agentIds)
    if (!isAgentId(agentId)) throw new UsageError(`--agent ${JSON.stringify(agentId)} is no agent id`)
  const tokenFile = values['token-file']
  return { kind: 'upstream', whose: whoseIn(values), agentIds, token: tokenFile === undefined ? null : tokenFrom(tokenFile) }
}

function whoseIn({ map, 'owner-field': field, issuer, format }: Values): Extract<ImportTask, { kind: 'upstream' }>['whose'] {
  if ((map === undefined) === (field === undefined))
    throw new UsageError('name either --map FILE or --owner-field FIELD: the list alone does not say whose a thread is')
  if (map !== undefined) {
    if (issuer !== undefined) throw new UsageError('--issuer goes with --owner-field')
    return fileNamed(map, format)
  }
  if (issuer === undefined || field === undefined || field === '')
    throw new UsageError('--owner-field FIELD goes with --issuer KEY')
  if (format !== undefined) throw new UsageError('--format goes with a file')
  return { field, issuer }
}

function fileNamed(file: string, format: string | undefined): NamedFile {
  const named = formatNamed(format) ?? formatOf(file)
  if (named === null)
    throw new UsageError(`what ${file === '-' ? 'stdin' : file} is written in cannot be told: name --format csv or jsonl`)
  if (file !== '-') requireReadable(file)
  return { file, format: named }
}

/** Fails before a store is opened or made. */
function requireReadable(file: string): void {
  try {
    accessSync(file, constants.R_OK)
  } catch {
    throw new UsageError(`${file} cannot be read`)
  }
  if (statSync(file).isDirectory()) throw new UsageError(`${file} is a folder`)
}

/** @throws UsageError for an unknown format */
export function formatNamed(text: string | undefined): Format | null {
  if (text === undefined) return null
  const format = FORMATS.find((one) => one === text)
  if (format === undefined) throw new UsageError(`--format is ${FORMATS.join(' or ')}`)
  return format
}

function filesOf(task: ImportTask): readonly string[] {
  if (task.kind === 'file') return [task.file]
  return task.kind === 'upstream' && 'file' in task.whose ? [task.whose.file] : []
}

function isSameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other)
  } catch {
    return false
  }
}
