/** Finds the command and runs it. */
import { readFileSync } from 'node:fs'
import { closest, distance } from 'fastest-levenshtein'
import { complain, EXIT, print, UsageError, type Command, type CommandGroup } from './command.ts'
import { diff } from './diff.ts'
import { doctor } from './doctor.ts'
import { explain } from './explain.ts'
import { grants } from './grants.ts'
import { revoke } from './revoke.ts'
import { routes } from './routes.ts'
import { serve } from './serve.ts'
import { store } from './store.ts'
import { test } from './test.ts'
import { threads } from './threads.ts'
import { user } from './user.ts'
import { validate } from './validate.ts'

type Commands = Readonly<Record<string, Command | CommandGroup>>

const COMMANDS: Commands = {
  serve,
  validate,
  routes,
  explain,
  diff,
  test,
  doctor,
  revoke,
  threads,
  grants,
  store,
  user,
}

/** Commands that are announced and not there yet. */
const TO_COME = ['health']

/**
 * Runs the program.
 * @param args what stood after its name
 * @returns the exit code
 */
export async function run(args: readonly string[]): Promise<number> {
  const [name] = args
  if (name === '--version' || name === '-V') {
    print(version())
    return EXIT.fine
  }
  return runOne('threadwarden', COMMANDS, overview(), args)
}

/**
 * Runs one of some commands.
 * @param path what stood before: the program, and perhaps a group of commands
 * @param about the help where no command is named
 */
async function runOne(path: string, commands: Commands, about: string, [name, ...rest]: readonly string[]): Promise<number> {
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    ;(name === undefined ? complain : print)(about)
    return name === undefined ? EXIT.usage : EXIT.fine
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command === undefined) {
    complain(unknown(path, commands, name))
    return EXIT.usage
  }
  const named = `${path} ${name}`
  if ('commands' in command) return runOne(named, command.commands, groupHelp(named, command), rest)
  if (rest.includes('--help') || rest.includes('-h')) {
    print(command.help)
    return EXIT.fine
  }
  try {
    return await command.run(rest)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    complain(`${named}: ${error.message}\nSee ${named} --help.`)
    return EXIT.usage
  }
}

function overview(): string {
  return [
    'threadwarden: every conversation thread of an agent chat runtime belongs to somebody',
    '',
    'Usage: threadwarden COMMAND [OPTIONS]',
    '',
    ...summaries(COMMANDS),
    '',
    '  --help     this text, or that of a command: threadwarden serve --help',
    '  --version  the version',
    '',
    'Exit codes: 0 fine, 1 findings or failure, 2 wrong usage.',
  ].join('\n')
}

function groupHelp(path: string, group: CommandGroup): string {
  return [
    `${path}: ${group.summary}`,
    '',
    `Usage: ${path} COMMAND --config FILE [OPTIONS]`,
    '',
    ...summaries(group.commands),
    '',
    group.about,
    '',
    `Each has a help of its own: ${path} ${Object.keys(group.commands)[0] ?? ''} --help`,
    '',
    'Exit codes: 0 fine, 1 findings or failure, 2 wrong usage.',
  ].join('\n')
}

function summaries(commands: Commands): readonly string[] {
  const width = Math.max(...Object.keys(commands).map((name) => name.length))
  return Object.entries(commands).map(([name, command]) => `  ${name.padEnd(width)}  ${command.summary}`)
}

function unknown(path: string, commands: Commands, name: string): string {
  if (commands === COMMANDS && TO_COME.includes(name))
    return `threadwarden: "${name}" is not supported by this version yet. See threadwarden --help.`
  const near = closest(name, Object.keys(commands))
  const hint = distance(name, near) <= 3 ? ` Did you mean "${near}"?` : ''
  return `${path}: there is no command "${name}".${hint} See ${path} --help.`
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
