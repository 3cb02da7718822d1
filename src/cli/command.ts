/** The declaration of a command: its options are parsed, and its help, reference and completion are written from it. */
import { parseArgs } from 'node:util'
import { nearest } from '../document/nearest.ts'
import type { Terminal } from './terminal.ts'

/**
 * `refused`: the command worked, and the request that it explains is refused. `configuration`: EX_CONFIG of sysexits(3), by which
 * a service manager knows that a restart does not help.
 */
export const EXIT = { fine: 0, failure: 1, usage: 2, refused: 3, configuration: 78 } as const

/** `parseArgs` reads `type`, `short`, `default` and `multiple`; the rest is for help, reference and completion. */
export interface Option {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  readonly default?: string | boolean
  readonly multiple?: boolean
  readonly placeholder?: string
  readonly help: string
}

type Options = Readonly<Record<string, Option>>

export type Values<O extends Options> = ReturnType<typeof parse<O>>['values']

interface Description<O extends Options> {
  /** Each form of the command, without optional options; by default the names of the positionals. */
  readonly usage?: readonly string[]
  readonly about: string
  /** The help of each positional, by its name. */
  readonly positionals?: Readonly<Record<string, string>>
  readonly options: O
  /** Whole command lines. */
  readonly examples: readonly string[]
  /** What each exit code means; 2 is wrong usage by default. */
  readonly exitCodes: Readonly<Record<0 | 1, string> & Partial<Record<2 | 3 | 78, string>>>
}

export interface Command extends Description<Options> {
  /**
   * @returns the exit code
   * @throws UsageError, CommandFailed
   */
  run(args: readonly string[], terminal: Terminal): Promise<number>
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

/** The command has failed: exit code 1. The message is for the person at the terminal; empty if it was printed already. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
}

export function defineCommand<const O extends Options>({
  run,
  ...description
}: Description<O> & {
  readonly run: (values: Values<O>, terminal: Terminal, positionals: readonly string[]) => number | Promise<number>
}): Command {
  return {
    ...description,
    async run(args, terminal) {
      const { values, positionals } = parse(args, description.options, {
        allowPositionals: description.positionals !== undefined,
      })
      return run(values, terminal, positionals)
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
    throw new UsageError(unknown === undefined ? message : `${unknown}.${hint}`)
  }
}

/** @returns a sentence that suggests the nearest word, or `''` if none is near */
export function didYouMean(word: string, words: readonly string[], prefix = ''): string {
  const near = nearest(word, words)
  return near === undefined ? '' : ` Did you mean "${prefix}${near}"?`
}

export function flag(help: string) {
  return { type: 'boolean', default: false, help } as const
}

export function value(placeholder: string, help: string) {
  return { type: 'string', placeholder, help } as const
}

/** @param shape what the command prints as JSON */
export function jsonFlag(shape: string, note = '') {
  return flag(`prints ${shape} on stdout${note}`)
}

export const CONFIG = {
  ...value('FILE', 'the configuration, YAML or JSON (default: $THREADWARDEN_CONFIG, or threadwarden.yaml in this folder)'),
  short: 'c',
} as const
export const QUIET = flag('hides the progress')
export const THREAD_SCOPE = value('KEY', 'the upstream of the thread, by its key under upstreams or agents (default: upstream)')
export const SCOPE_FILTER = value('KEY', "only threads of the upstream with this key; '' for upstream (default: all)")
export const WITH_SCOPE = ', with "scope" if the thread does not belong to upstream'
