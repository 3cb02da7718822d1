/** Finds the command and runs it. */
import { readFileSync } from 'node:fs'
import { closest, distance } from 'fastest-levenshtein'
import { complain, EXIT, print, UsageError, type Command } from './command.ts'
import { diff } from './diff.ts'
import { doctor } from './doctor.ts'
import { explain } from './explain.ts'
import { revoke } from './revoke.ts'
import { routes } from './routes.ts'
import { serve } from './serve.ts'
import { test } from './test.ts'
import { validate } from './validate.ts'

const COMMANDS: Readonly<Record<string, Command>> = { serve, validate, routes, explain, diff, test, doctor, revoke }

/** Commands that are announced and not there yet. */
const TO_COME = ['health', 'threads', 'grants', 'store', 'user']

/**
 * Runs the program.
 * @param args what stood after its name
 * @returns the exit code
 */
export async function run(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args
  if (name === '--version' || name === '-V') {
    print(version())
    return EXIT.fine
  }
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    ;(name === undefined ? complain : print)(overview())
    return name === undefined ? EXIT.usage : EXIT.fine
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command === undefined) {
    complain(unknown(name))
    return EXIT.usage
  }
  if (rest.includes('--help') || rest.includes('-h')) {
    print(command.help)
    return EXIT.fine
  }
  try {
    return await command.run(rest)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    complain(`threadwarden ${name}: ${error.message}\nSee threadwarden ${name} --help.`)
    return EXIT.usage
  }
}

function overview(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length))
  return [
    'threadwarden: every conversation thread of an agent chat runtime belongs to somebody',
    '',
    'Usage: threadwarden COMMAND [OPTIONS]',
    '',
    ...Object.entries(COMMANDS).map(([name, command]) => `  ${name.padEnd(width)}  ${command.summary}`),
    '',
    '  --help     this text, or that of a command: threadwarden serve --help',
    '  --version  the version',
    '',
    'Exit codes: 0 fine, 1 findings or failure, 2 wrong usage.',
  ].join('\n')
}

function unknown(name: string): string {
  if (TO_COME.includes(name)) return `threadwarden: "${name}" is not supported by this version yet. See threadwarden --help.`
  const near = closest(name, Object.keys(COMMANDS))
  const hint = distance(name, near) <= 3 ? ` Did you mean "${near}"?` : ''
  return `threadwarden: there is no command "${name}".${hint} See threadwarden --help.`
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
