/** Reads the configuration, and files that options name. */
import { readFileSync, statSync } from 'node:fs'
import { faultLine, type Fault } from '../document/fault.ts'
import { prepare, type Prepared } from '../snapshot/load.ts'
import { CommandFailed, UsageError } from './command.ts'
import { complain, printData, type Terminal } from './terminal.ts'

export interface ConfigOptions {
  readonly config?: string | undefined
  readonly json?: boolean
}

/** @throws UsageError without a file */
export function configFile({ config }: ConfigOptions): string {
  if (config === undefined) throw new UsageError('--config FILE is missing')
  return config
}

/** @throws UsageError without a file, CommandFailed after it printed the errors */
export function loadConfig(terminal: Terminal, options: ConfigOptions): Prepared {
  const prepared = prepare(configFile(options), terminal.env)
  if (prepared.ok) return prepared.value
  printErrors(terminal, prepared.faults, options)
  throw new CommandFailed()
}

export function printErrors(terminal: Terminal, errors: readonly Fault[], { json = false }: ConfigOptions): void {
  if (json) printData(terminal, { faults: errors })
  else for (const error of errors) complain(terminal, `error: ${faultLine(error)}`)
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
  } catch {
    throw new UsageError(`${option} ${file} cannot be read`)
  }
  if (bytes === null || bytes.length > limit) throw new UsageError(`${option} ${file} is larger than ${limit} bytes`)
  return bytes
}

const TOKEN_LIMIT = 64 * 1024

/** @throws UsageError for an unreadable file or one without a token. The message never repeats the content */
export function readToken(file: string): string {
  const text = readInput('--token-file', file, TOKEN_LIMIT).toString('utf8').trim()
  if (!/^[\x21-\x7e]+$/.test(text)) throw new UsageError(`--token-file ${file} holds no token: one line, without "Bearer"`)
  return text
}
