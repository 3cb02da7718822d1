/** What a command of the program is. Exit codes: 0 success, 1 findings or failure, 2 wrong usage. */
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { terminalJson } from '../core/json/terminal-json.ts'
import { harmless, harmlessLines } from './terminal.ts'

export const EXIT = { fine: 0, failure: 1, usage: 2 } as const

export interface Command {
  readonly summary: string
  readonly help: string
  /** @returns the exit code */
  run(args: readonly string[]): Promise<number>
}

export interface CommandGroup {
  readonly summary: string
  /** The text below the list of its commands. */
  readonly about: string
  readonly commands: Readonly<Record<string, Command>>
}

/** Wrong usage: the message is for the person at the terminal. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** @throws UsageError for unknown options */
export function readOptions<T extends NonNullable<ParseArgsConfig['options']>>(args: readonly string[], options: T) {
  return understood(() => parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values)
}

/** @throws UsageError for unknown options */
export function readArguments<T extends NonNullable<ParseArgsConfig['options']>>(args: readonly string[], options: T) {
  return understood(() => parseArgs({ args: [...args], options, strict: true, allowPositionals: true }))
}

function understood<T>(parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw new UsageError(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error))
  }
}

/** Prints one line to stdout. A terminal obeys nothing in it, whatever part a caller or an upstream chose. */
export function print(line: string): void {
  process.stdout.write(`${harmless(line)}\n`)
}

/** Prints one line to stderr, with the same protection. */
export function complain(line: string): void {
  process.stderr.write(`${harmless(line)}\n`)
}

/** Prints lines to stdout. Each line was made harmless when it was built: a line end in a value would forge a line. */
export function printLines(text: string): void {
  process.stdout.write(`${harmlessLines(text, process.stdout, process.env)}\n`)
}

export function printData(value: unknown, indent = 2): void {
  process.stdout.write(`${terminalJson(JSON.stringify(value, null, indent))}\n`)
}
