/** Finds the command and runs it. */
import { readFileSync } from 'node:fs'
import { CommandFailed, didYouMean, EXIT, UsageError, type CommandGroup } from './command.ts'
import { complain, print, printLines, type Terminal } from './terminal.ts'
import { PROGRAM } from './commands.ts'
import { commandHelp, groupHelp } from './help.ts'

const HELP = ['--help', '-h']

export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name = ''] = args
  if (!['--version', '-V'].includes(name)) return runIn('threadwarden', PROGRAM, args, terminal)
  print(terminal, version())
  return EXIT.fine
}

async function runIn(path: string, group: CommandGroup, [name, ...rest]: readonly string[], terminal: Terminal): Promise<number> {
  if (name === undefined) {
    for (const line of groupHelp(path, group).split('\n')) complain(terminal, line)
    return EXIT.usage
  }
  if (name === 'help' || HELP.includes(name)) {
    printLines(terminal, groupHelp(path, group))
    return EXIT.fine
  }
  const found = Object.hasOwn(group.commands, name) ? group.commands[name] : undefined
  if (found === undefined) {
    complain(
      terminal,
      `${path}: there is no command "${name}".${didYouMean(name, Object.keys(group.commands))} See ${path} --help.`,
    )
    return EXIT.usage
  }
  const named = `${path} ${name}`
  if ('commands' in found) return runIn(named, found, rest, terminal)
  const { command } = await found.load()
  if (rest.some((one) => HELP.includes(one))) {
    printLines(terminal, commandHelp(named, command))
    return EXIT.fine
  }
  try {
    return await command.run(rest, terminal)
  } catch (error) {
    if (error instanceof CommandFailed) {
      if (error.message !== '') complain(terminal, error.message)
      return EXIT.failure
    }
    if (!(error instanceof UsageError)) throw error
    complain(terminal, `${named}: ${error.message}`)
    complain(terminal, `See ${named} --help.`)
    return EXIT.usage
  }
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
