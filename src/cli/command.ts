/** What a command of the program is. Exit codes: 0 fine, 1 findings or failure, 2 wrong usage. */
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { terminalJson } from '../core/json/terminal-json.ts'
import { harmless, harmlessLines } from './terminal.ts'

/** The exit codes of every command. */
export const EXIT = { fine: 0, failure: 1, usage: 2 } as const

export interface Command {
  /** One line for the list of commands. */
  readonly summary: string
  /** The whole text of `--help`. */
  readonly help: string
  /** Runs it with what stood after its name; resolves with the exit code. */
  run(args: readonly string[]): Promise<number>
}

/** Commands under one name: `threadwarden threads list`. */
export interface CommandGroup {
  /** One line for the list of commands. */
  readonly summary: string
  /** What stands below the list of its commands. */
  readonly about: string
  readonly commands: Readonly<Record<string, Command>>
}

/** Wrong usage: the message is for the person at the terminal. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/**
 * Reads the options of a command.
 * @throws UsageError for options that it doesn't have
 */
export function readOptions<T extends NonNullable<ParseArgsConfig['options']>>(args: readonly string[], options: T) {
  return understood(() => parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values)
}

/**
 * Reads the options of a command that takes names besides.
 * @throws UsageError for options that it doesn't have
 */
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

/** Prints one line to stdout. Whatever a caller or an upstream chose of it, a terminal obeys nothing in it. */
export function print(line: string): void {
  process.stdout.write(`${harmless(line)}\n`)
}

/** Prints one line to stderr, likewise. */
export function complain(line: string): void {
  process.stderr.write(`${harmless(line)}\n`)
}

/** Prints lines to stdout, each of which was made harmless where it was put together: of a value, an end of line would forge one. */
export function printLines(text: string): void {
  process.stdout.write(`${harmlessLines(text, process.stdout, process.env)}\n`)
}

/** Prints data to stdout as JSON. */
export function printData(value: unknown, indent = 2): void {
  process.stdout.write(`${terminalJson(JSON.stringify(value, null, indent))}\n`)
}
