/** What several commands read before they begin: the configuration, and files that options name. */
import { readFileSync, statSync } from 'node:fs'
import { faultLine, type Fault } from '../document/fault.ts'
import { prepare, type Prepared } from '../snapshot/load.ts'
import { complain, printData, UsageError } from './command.ts'

/**
 * Loads the configuration, or says what is wrong with it.
 * @param json true for faults as data on stdout
 * @returns null if there are faults
 * @throws UsageError without a file
 */
export function loaded(file: string | undefined, json: boolean): Prepared | null {
  if (file === undefined) throw new UsageError('--config FILE is missing')
  const prepared = prepare(file, process.env)
  if (prepared.ok) return prepared.value
  sayFaults(prepared.faults, json)
  return null
}

/** Says what is wrong: on stderr, or as data on stdout. */
export function sayFaults(faults: readonly Fault[], json: boolean): void {
  if (json) printData({ faults })
  else for (const fault of faults) complain(`error: ${faultLine(fault)}`)
}

/**
 * Reads a file that an option names.
 * @param most the largest that is read, in bytes
 * @throws UsageError if it can't be read
 */
export function fileOf(option: string, file: string, most: number): Buffer {
  let bytes: Buffer | null
  try {
    // A device tells no size, and is read as it is.
    bytes = statSync(file).size > most ? null : readFileSync(file)
  } catch {
    throw new UsageError(`${option} ${file} cannot be read`)
  }
  if (bytes === null || bytes.length > most) throw new UsageError(`${option} ${file} is larger than ${most} bytes`)
  return bytes
}

/** The longest file that is taken for one with a token, in bytes. */
const MOST_TOKEN = 64 * 1024

/**
 * Reads the file of `--token-file`.
 * @throws UsageError for a file that can't be read, or holds no token: what stands in it is not repeated
 */
export function tokenFrom(file: string): string {
  const text = fileOf('--token-file', file, MOST_TOKEN).toString('utf8').trim()
  if (!/^[\x21-\x7e]+$/.test(text)) throw new UsageError(`--token-file ${file} holds no token: one line, without "Bearer"`)
  return text
}
