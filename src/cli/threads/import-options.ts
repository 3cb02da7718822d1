/** The options of `threads import`, and the task that they describe. */
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { FORMATS, formatOf, type Format } from '../../tools/import-export/source-file.ts'
import { isAgentId } from '../../core/route/ids.ts'
import { CONFIG, flag, jsonFlag, QUIET, UsageError, value, type Values } from '../command.ts'
import { readToken } from '../input-files.ts'

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

export const OPTIONS = {
  config: CONFIG,
  format: value('csv|jsonl', 'the format of FILE or of the mapping (default: by the file extension)'),
  'from-upstream': flag("reads a runtime's own list of threads"),
  map: value('FILE', 'a mapping: a file with the columns thread and user'),
  'owner-field': value('FIELD', "the field of the list with the owner's subject, for example createdById"),
  issuer: value('KEY', 'the issuer of these subjects'),
  agent: { ...value('AGENT', 'only threads of this agent, as a managed runtime requires; may be repeated'), multiple: true },
  'token-file': value('FILE', 'a file with the credential for the upstream'),
  'from-observed': flag('confirms the users that were observed under enforcement: observe'),
  scope: value('KEY', "an upstream, by its key under upstreams or agents; '' for upstream"),
  'dry-run': flag('shows the result, and changes nothing'),
  report: value('FILE', 'writes every problem there, a JSON object a line; stderr shows the first 20'),
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
    if (!isAgentId(agentId)) throw new UsageError(`--agent ${JSON.stringify(agentId)} is no agent id`)
  const tokenFile = values['token-file']
  return { kind: 'upstream', whose: whoseIn(values), agentIds, token: tokenFile === undefined ? null : readToken(tokenFile) }
}

function whoseIn(values: ImportOptions): Extract<ImportTask, { kind: 'upstream' }>['whose'] {
  const { map, 'owner-field': field, issuer, format } = values
  if ((map === undefined) === (field === undefined))
    throw new UsageError('name either --map FILE or --owner-field FIELD: the list alone does not say whose a thread is')
  if (map !== undefined) {
    if (issuer !== undefined) throw new UsageError('--issuer goes with --owner-field')
    return fileNamed(map, values)
  }
  if (issuer === undefined || field === undefined || field === '')
    throw new UsageError('--owner-field FIELD goes with --issuer KEY')
  if (issuer.includes(':'))
    throw new UsageError(
      `--issuer ${issuer} is no issuer key: name a key of authentication.issuers, without a colon and a subject`,
    )
  if (format !== undefined) throw new UsageError('--format goes with a file')
  return { field, issuer }
}

/** Fails before a store is opened or made. */
function fileNamed(file: string, { format, report }: ImportOptions): NamedFile {
  const named = formatNamed(format) ?? formatOf(file)
  if (named === null)
    throw new UsageError(`what ${file === '-' ? 'stdin' : file} is written in cannot be told: name --format csv or jsonl`)
  if (file === '-') return { file, format: named }
  try {
    accessSync(file, constants.R_OK)
  } catch {
    throw new UsageError(`${file} cannot be read`)
  }
  if (statSync(file).isDirectory()) throw new UsageError(`${file} is a folder`)
  if (report !== undefined && existsSync(report) && realpathSync(report) === realpathSync(file))
    throw new UsageError(`--report would be written over ${file}`)
  return { file, format: named }
}

/** @throws UsageError for an unknown format */
export function formatNamed(text: string | undefined): Format | null {
  if (text === undefined) return null
  const format = FORMATS.find((one) => one === text)
  if (format === undefined) throw new UsageError(`--format is ${FORMATS.join(' or ')}`)
  return format
}
