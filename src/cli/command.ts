/** The declaration of a command: its options are parsed, and its help and completion are written from it. */
import { parseArgs } from 'node:util'
import { closest, distance } from 'fastest-levenshtein'
import { terminalJson } from '../core/json/terminal-json.ts'
import { harmless, harmlessLines } from './terminal.ts'

export const EXIT = { fine: 0, failure: 1, usage: 2 } as const

/** `parseArgs` reads `type`, `default` and `multiple`; the rest is for help and completion. */
export interface Option {
  readonly type: 'string' | 'boolean'
  readonly default?: string | boolean
  readonly multiple?: boolean
  readonly placeholder?: string
  readonly help: string
}

type Options = Readonly<Record<string, Option>>

export type Values<O extends Options> = ReturnType<typeof parse<O>>['values']

interface Description<O extends Options> {
  /** Each form of the command, without `--config FILE` and optional options; by default the names of the positionals. */
  readonly usage?: readonly string[]
  readonly about: string
  /** The help of each positional, by its name. */
  readonly positionals?: Readonly<Record<string, string>>
  readonly options: O
  /** What the exit codes 0, 1 and 2 mean; 2 is wrong usage by default. */
  readonly exitCodes: readonly [fine: string, failure: string, usage?: string]
}

export interface Command extends Description<Options> {
  /**
   * @returns the exit code
   * @throws UsageError
   */
  run(args: readonly string[]): Promise<number>
}

/** A command whose module is loaded on demand: no user waits for the modules of other commands. */
export interface NamedCommand {
  readonly summary: string
  readonly load: () => Promise<{ readonly command: Command }>
}

export interface CommandGroup {
  readonly summary: string
  /** The text below the list of its commands. */
  readonly about: string
  readonly commands: Readonly<Record<string, NamedCommand | CommandGroup>>
}

/** Wrong usage: the message is for the person at the terminal. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export function defineCommand<const O extends Options>({
  run,
  ...description
}: Description<O> & {
  readonly run: (values: Values<O>, positionals: readonly string[]) => number | Promise<number>
}): Command {
  return {
    ...description,
    async run(args) {
      const { values, positionals } = parse(args, description.options, {
        allowPositionals: description.positionals !== undefined,
      })
      return run(values, positionals)
    },
  }
}

function parse<O extends Options>(args: readonly string[], options: O, positionals: { readonly allowPositionals: boolean }) {
  try {
    return parseArgs({ args: [...args], options, strict: true, ...positionals })
  } catch (error) {
    const [message = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
    const [unknown, name = ''] = /^Unknown option '--([^']+)'/.exec(message) ?? []
    const hint = unknown === undefined ? '' : didYouMean(name, ['help', ...Object.keys(options)], '--')
    throw new UsageError(hint === '' ? message : `${unknown}.${hint}`)
  }
}

/** @returns a sentence that suggests the nearest of the words, or nothing if none is near */
export function didYouMean(word: string, words: readonly string[], prefix = ''): string {
  const near = closest(word, words)
  return distance(word, near) <= 3 ? ` Did you mean "${prefix}${near}"?` : ''
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
