/** `threadwarden explain --audit` and `--request-id`: decide a line of the audit log again by the current policy. */
import { createReadStream, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import { atScope } from '../tools/import-export/users.ts'
import { readAuditLine } from '../audit/replay.ts'
import { makeJsonReader } from '../core/json/read.ts'
import type { Policy } from '../policy/compile.ts'
import { notesOn, replayedData } from '../tools/simulate/replayed.ts'
import { replay, type Replayed } from '../tools/simulate/replay.ts'
import {
  needText,
  observedText,
  permitText,
  principalText,
  relationText,
  refusalText,
  triedText,
} from '../tools/simulate/decision-text.ts'
import { CommandFailed, EXIT, UsageError } from './command.ts'
import { printData, printEntries, type Entry, type Terminal } from './terminal.ts'
import { loadConfig, readInput, type ConfigOptions } from './input-files.ts'

/** The longest line that is read, in bytes. */
const MOST_LINE = 1024 * 1024

/**
 * @param named the line, `@FILE` or `-`
 * @throws UsageError for options of other forms of the command, and for an invalid line
 */
export async function explainAudit(terminal: Terminal, named: string, options: ConfigOptions): Promise<number> {
  for (const [name, given] of Object.entries(options))
    if (given !== false && !['config', 'audit', 'json'].includes(name)) throw new UsageError(`--${name} does not go with --audit`)
  const recorded = await read(named, terminal)
  const { policy } = loadConfig(terminal, options)
  const replayed = replay(recorded, policy)
  if (options.json === true) printData(terminal, replayedData(replayed, recorded, policy))
  else printEntries(terminal, replayedEntries(replayed, recorded, policy))
  return replayed.same === true ? EXIT.fine : EXIT.refused
}

/**
 * @param options `audit` names another file, `@FILE`, or `-` for stdin
 * @throws UsageError for options of other forms of the command; CommandFailed where no line has the id
 */
export async function explainRequestId(
  terminal: Terminal,
  id: string,
  options: ConfigOptions & { readonly audit?: string | undefined },
): Promise<number> {
  for (const [name, given] of Object.entries(options))
    if (given !== undefined && given !== false && !['config', 'audit', 'json', 'request-id'].includes(name))
      throw new UsageError(`--${name} does not go with --request-id`)
  const { audit, config, json } = options
  if (audit !== undefined && audit !== '-' && !audit.startsWith('@'))
    throw new UsageError('with --request-id, --audit is @FILE or -')
  const files = audit === '-' ? [] : auditFiles(terminal, options, audit?.slice(1))
  const found = audit === '-' ? await lineWith(id, terminal.stdin) : await lineIn(id, files)
  if (found === null) {
    const where =
      audit === '-'
        ? 'stdin has'
        : `${files.length === 1 ? '' : `${files.length} files: `}${files[0] ?? 'no audit file'} and its rotated files have`
    throw new CommandFailed(
      `error: ${where} no line with the request id ${id}: the audit was off, or the line was removed by rotation`,
    )
  }
  return explainAudit(terminal, found, { ...(config === undefined ? {} : { config }), json: json === true })
}

/** The newest first: the file itself, then what rotation made of it. */
function auditFiles(terminal: Terminal, options: ConfigOptions, named: string | undefined): readonly string[] {
  const file = named ?? configuredFile(terminal, options)
  const folder = dirname(file)
  const rotated = readFolder(folder).filter(
    (name) => name.startsWith(`${basename(file)}.`) || name.startsWith(`${basename(file)}-`),
  )
  return [file, ...rotated.toSorted().map((name) => join(folder, name))]
}

function configuredFile(terminal: Terminal, options: ConfigOptions): string {
  const { audit } = loadConfig(terminal, options).config
  if (audit.to === 'file') return audit.file
  const hint = audit.to === 'off' ? 'the audit is off: set audit.to' : 'the audit goes to stdout'
  throw new UsageError(`${hint}, or name a file with lines of the audit: --audit @FILE`)
}

function readFolder(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

async function lineIn(id: string, files: readonly string[]): Promise<string | null> {
  for (const file of files) {
    const bytes = createReadStream(file)
    try {
      const found = await lineWith(id, file.endsWith('.gz') ? bytes.pipe(createGunzip()) : bytes)
      if (found !== null) return found
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        throw new CommandFailed(`error: ${file}: ${error instanceof Error ? error.message : String(error)}`)
    } finally {
      bytes.destroy()
    }
  }
  return null
}

async function lineWith(id: string, input: Readable): Promise<string | null> {
  const named = JSON.stringify({ requestId: id }).slice(1, -1)
  // The interface of lines does not report errors of its input.
  let failed: Error | undefined
  input.once('error', (error: Error) => (failed = error))
  for await (const line of createInterface({ input, crlfDelay: Infinity })) if (line.includes(named)) return line
  if (failed !== undefined) throw failed
  return null
}

type Recorded = Parameters<typeof replay>[0]

async function read(named: string, terminal: Terminal): Promise<Recorded> {
  const bytes =
    named === '-'
      ? await buffer(terminal.stdin)
      : named.startsWith('@')
        ? readInput('--audit', named.slice(1), MOST_LINE)
        : Buffer.from(named)
  const { length } = bytes.toString('utf8').match(/^.*\S.*$/gm) ?? []
  if (length > 1) throw new UsageError(`--audit takes one line, and got ${length}: tail -1 FILE prints the last line of a file`)
  const reader = makeJsonReader()
  const reading = reader.push(bytes) ?? reader.end()
  if (reading.outcome === 'refused')
    throw new UsageError(`--audit must be one line of the audit log, a JSON object (${reading.reason})`)
  const recorded = readAuditLine(reading.value)
  if ('fault' in recorded) throw new UsageError(`--audit ${recorded.fault}`)
  return recorded
}

function replayedEntries(replayed: Replayed, recorded: Recorded, policy: Policy): readonly Entry[] {
  const { principal, descriptor, scope, facts } = recorded
  const { then, trace, same, samePolicy } = replayed
  const { enforcement, unknownThread, userScoped } = facts
  const relation = trace?.relation ?? null
  const observed = trace?.decision.outcome === 'permitted' && trace.decision.observed !== null
  return [
    ['route', descriptor === null ? [] : [`${descriptor.route.id} (${descriptor.route.method})`]],
    ['caller', principal === null ? [] : [principalText(principal, policy.rules)]],
    [
      'facts',
      [
        ...(relation === null
          ? []
          : [`the thread ${descriptor?.ids.threadId ?? ''}${atScope(scope)} was ${relationText(relation)}`]),
        `enforcement ${enforcement}, unknownThread ${unknownThread}, userScoped ${userScoped}`,
      ],
    ],
    ['policy', [`${policy.file}: ${samePolicy ? 'the same as then' : 'another policy than then, or changed since'}`]],
    ['rules', trace === null ? ['none was tried'] : trace.tried.map((one) => (observed ? observedText : triedText)(one, trace))],
    [
      'then',
      [
        `${then.outcome}${then.reason === 'permitted' ? '' : ` (${then.reason})`}${then.rule === undefined ? '' : ` by "${then.rule}"`}`,
      ],
    ],
    ['now', trace === null ? [] : [nowText(trace.decision, facts, policy)]],
    ['same', [same === null ? 'unknown' : same ? 'yes' : 'no'], same === true ? 'green' : same === false ? 'red' : 'yellow'],
    ['notes', notesOn(replayed, recorded, policy)],
  ]
}

function nowText(decision: NonNullable<Replayed['trace']>['decision'], facts: Recorded['facts'], { rules }: Policy): string {
  switch (decision.outcome) {
    case 'permitted':
      return permitText(decision, facts, rules)
    case 'refused':
      return `refused: ${refusalText(decision)}`
    case 'needs':
      return `not known: the decision needs ${needText(decision)}, which the line does not contain`
  }
}
