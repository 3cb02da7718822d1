/** Reads the configuration, and files that options name. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { faultLine, inOrder, type Fault } from '../document/fault.ts'
import { sizeText } from '../document/quantities.ts'
import { unreadable } from '../document/sources.ts'
import { prepare, type Prepared } from '../snapshot/load.ts'
import { CommandFailed, UsageError } from './command.ts'
import { complain, printData, type Terminal } from './terminal.ts'

export interface ConfigOptions {
  readonly config?: string | undefined
  readonly json?: boolean
}

const VARIABLE = 'THREADWARDEN_CONFIG'
const USUAL_FILE = 'threadwarden.yaml'

/** The option, the environment variable, or the file with the usual name in the working directory. @throws UsageError without a file */
export function configFile({ env }: Terminal, { config }: ConfigOptions): string {
  const named = config ?? env[VARIABLE] ?? ''
  if (named !== '') return named
  if (config === undefined && existsSync(USUAL_FILE)) return USUAL_FILE
  throw new UsageError(`--config FILE is missing: ${VARIABLE} is not set, and there is no ${USUAL_FILE} in this folder`)
}

/** @throws UsageError without a file, CommandFailed after it printed the errors */
export function loadConfig(terminal: Terminal, options: ConfigOptions): Prepared {
  const prepared = prepare(configFile(terminal, options), terminal.env)
  if (prepared.ok) return prepared.value
  printErrors(terminal, prepared.faults, options)
  throw new CommandFailed()
}

export function printErrors(terminal: Terminal, errors: readonly Fault[], { json = false }: ConfigOptions): void {
  if (json) printData(terminal, { faults: errors })
  else for (const error of inOrder(errors)) complain(terminal, `error: ${faultLine(error)}`)
}

/**
 * @param limit the largest size that is read, in bytes
 * @throws UsageError if the file cannot be read
 */
export function readInput(option: string, file: string, limit: number): Buffer {
  let bytes: Buffer | null
  try {
    // A device reports no size, and is read in any case.
    bytes = statSync(file).size > limit ? null : readFileSync(file)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new UsageError(`${option} ${file} ${unreadable(code).message}`)
  }
  if (bytes === null || bytes.length > limit) throw new UsageError(`${option} ${file} is larger than ${sizeText(limit)}`)
  return bytes
}

const TOKEN_LIMIT = 64 * 1024

/** @throws UsageError for an unreadable file or one without a token. The message never repeats the content */
export function readToken(file: string): string {
  const text = readInput('--token-file', file, TOKEN_LIMIT).toString('utf8').trim()
  if (!/^[\x21-\x7e]+$/.test(text))
    throw new UsageError(`--token-file ${file} contains no token: write the token alone on one line, without "Bearer"`)
  return text
}
