/** Reads what several commands need first: the configuration, and files that options name. */
import { readFileSync, statSync } from 'node:fs'
import { faultLine, type Fault } from '../document/fault.ts'
import { prepare, type Prepared } from '../snapshot/load.ts'
import { complain, printData, UsageError } from './command.ts'

/**
 * @returns null after it printed the errors
 * @throws UsageError without a file
 */
export function loaded(file: string | undefined, json: boolean): Prepared | null {
  if (file === undefined) throw new UsageError('--config FILE is missing')
  const prepared = prepare(file, process.env)
  if (prepared.ok) return prepared.value
  sayFaults(prepared.faults, json)
  return null
}

export function sayFaults(faults: readonly Fault[], json: boolean): void {
  if (json) printData({ faults })
  else for (const fault of faults) complain(`error: ${faultLine(fault)}`)
}

/**
 * @param most the largest size that is read, in bytes
 * @throws UsageError if the file cannot be read
 */
export function fileOf(option: string, file: string, most: number): Buffer {
  let bytes: Buffer | null
  try {
    // A device reports no size, and is read in any case.
    bytes = statSync(file).size > most ? null : readFileSync(file)
  } catch {
    throw new UsageError(`${option} ${file} cannot be read`)
  }
  if (bytes === null || bytes.length > most) throw new UsageError(`${option} ${file} is larger than ${most} bytes`)
  return bytes
}

/** The largest token file that is read, in bytes. */
const MOST_TOKEN = 64 * 1024

/** @throws UsageError for an unreadable file or one without a token. The message never repeats the content */
export function tokenFrom(file: string): string {
  const text = fileOf('--token-file', file, MOST_TOKEN).toString('utf8').trim()
  if (!/^[\x21-\x7e]+$/.test(text)) throw new UsageError(`--token-file ${file} holds no token: one line, without "Bearer"`)
  return text
}
