/** Finds the command and runs it. */
import { readFileSync } from 'node:fs'
import { closest, distance } from 'fastest-levenshtein'
import { complain, EXIT, print, printLines, UsageError, type Command, type CommandGroup } from './command.ts'
import { largest } from '../core/json/extremes.ts'

type Commands = Readonly<Record<string, () => Promise<Command | CommandGroup>>>

/** Each command is loaded on demand: no user waits for the modules of other commands. */
const COMMANDS: Commands = {
  serve: async () => (await import('./serve.ts')).serve,
  validate: async () => (await import('./validate.ts')).validate,
  routes: async () => (await import('./routes.ts')).routes,
  explain: async () => (await import('./explain.ts')).explain,
  diff: async () => (await import('./diff.ts')).diff,
  test: async () => (await import('./test.ts')).test,
  doctor: async () => (await import('./doctor.ts')).doctor,
  revoke: async () => (await import('./revoke.ts')).revoke,
  threads: async () => (await import('./threads.ts')).threads,
  grants: async () => (await import('./grants.ts')).grants,
  store: async () => (await import('./store.ts')).store,
  user: async () => (await import('./user.ts')).user,
}

/** Commands that are announced but do not exist yet. */
const TO_COME = ['health']

export async function run(args: readonly string[]): Promise<number> {
  const [name] = args
  if (name === '--version' || name === '-V') {
    print(version())
    return EXIT.fine
  }
  return runOne('threadwarden', COMMANDS, overview, args)
}

async function runOne(
  path: string,
  commands: Commands,
  about: () => Promise<string>,
  [name, ...rest]: readonly string[],
): Promise<number> {
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    const text = await about()
    if (name === undefined) for (const line of text.split('\n')) complain(line)
    else printLines(text)
    return name === undefined ? EXIT.usage : EXIT.fine
  }
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (load === undefined) {
    complain(unknown(path, commands, name))
    return EXIT.usage
  }
  const command = await load()
  const named = `${path} ${name}`
  if ('commands' in command) {
    const own = Object.entries(command.commands).map(([key, one]) => [key, () => Promise.resolve(one)] as const)
    return runOne(named, Object.fromEntries(own), () => Promise.resolve(groupHelp(named, command)), rest)
  }
  if (rest.includes('--help') || rest.includes('-h')) {
    printLines(command.help)
    return EXIT.fine
  }
  try {
    return await command.run(rest)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    complain(`${named}: ${error.message}`)
    complain(`See ${named} --help.`)
    return EXIT.usage
  }
}

async function overview(): Promise<string> {
  const loaded = Object.entries(COMMANDS).map(async ([name, load]) => [name, await load()] as const)
  return [
    'threadwarden: every conversation thread of an agent chat runtime belongs to somebody',
    '',
    'Usage: threadwarden COMMAND [OPTIONS]',
    '',
    ...summaries(Object.fromEntries(await Promise.all(loaded))),
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

function summaries(commands: Readonly<Record<string, Command | CommandGroup>>): readonly string[] {
  const width = largest(Object.keys(commands).map((name) => name.length))
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
