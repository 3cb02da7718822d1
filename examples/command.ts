/** The command line of the example programs: options, `--help`, exit codes, stopping. */
import { parseArgs, type ParseArgsConfig } from 'node:util'

/** Values of options, all of them strings. */
export type Values = Readonly<Record<string, string | undefined>>

/** A wrong command line. */
export class UsageError extends Error {}

/**
 * Runs a program: reads its options, prints the usage for `--help`, and turns failures into exit codes
 * (0 fine, 1 failed, 2 wrong usage).
 * @param usage the text for `--help`
 * @param names the options it knows; each takes a value
 * @param program gets the words that aren't options and the options' values
 */
export async function command(
  usage: string,
  names: readonly string[],
  program: (words: readonly string[], values: Values) => Promise<void>,
): Promise<void> {
  try {
    const { help, ...values } = read(names)
    if (help === undefined) await program(values.words, values.options)
    else process.stdout.write(usage)
  } catch (error) {
    process.stderr.write(`${textOf(error)}\n`)
    if (error instanceof UsageError) process.stderr.write(`\n${usage}`)
    process.exitCode = error instanceof UsageError ? 2 : 1
  }
}

function read(names: readonly string[]): { help?: true; words: readonly string[]; options: Values } {
  const options: NonNullable<ParseArgsConfig['options']> = { help: { type: 'boolean', short: 'h' } }
  for (const name of names) options[name] = { type: 'string' }
  try {
    const { positionals, values } = parseArgs({ options, allowPositionals: true, strict: true })
    const { help, ...rest } = values
    return { ...(help === true && { help: true as const }), words: positionals, options: rest as Values }
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error })
  }
}

/** An error in one line; with its cause, since "fetch failed" alone says nothing. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error && !error.message.includes(error.cause.message)
    ? `${error.message}: ${error.cause.message}`
    : error.message
}

/** Refuses positional arguments. */
export function noWords(words: readonly string[]): void {
  if (words.length > 0) throw new UsageError(`unknown command: ${words.join(' ')}`)
}

/** The value of a required option. */
export function required(values: Values, name: string): string {
  const value = values[name]
  if (value === undefined) throw new UsageError(`--${name} is missing`)
  return value
}

/** The `--port` option; 0, any free port, if it isn't given. */
export function portOf(values: Values): number {
  const text = values['port'] ?? '0'
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65535) throw new UsageError(`--port ${text} is not a port`)
  return port
}

/** Waits for SIGINT or SIGTERM, then closes what was started. */
export async function untilStopped(started: { close(): Promise<void> }): Promise<void> {
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  await started.close()
}
