/** Finds the command and runs it. */
import { readFileSync } from 'node:fs'
import { CommandFailed, didYouMean, EXIT, UsageError, type CommandGroup } from './command.ts'
import { complain, print, printLines } from './terminal.ts'
import { PROGRAM } from './commands.ts'
import { commandHelp, groupHelp } from './help.ts'

const HELP = ['--help', '-h']

export async function run(args: readonly string[]): Promise<number> {
  const [name = ''] = args
  if (!['--version', '-V'].includes(name)) return runIn('threadwarden', PROGRAM, args)
  print(version())
  return EXIT.fine
}

async function runIn(path: string, group: CommandGroup, [name, ...rest]: readonly string[]): Promise<number> {
  if (name === undefined) {
    for (const line of groupHelp(path, group).split('\n')) complain(line)
    return EXIT.usage
  }
  if (name === 'help' || HELP.includes(name)) {
    printLines(groupHelp(path, group))
    return EXIT.fine
  }
  const found = Object.hasOwn(group.commands, name) ? group.commands[name] : undefined
  if (found === undefined) {
    complain(`${path}: there is no command "${name}".${didYouMean(name, Object.keys(group.commands))} See ${path} --help.`)
    return EXIT.usage
  }
  const named = `${path} ${name}`
  if ('commands' in found) return runIn(named, found, rest)
  const { command } = await found.load()
  if (rest.some((one) => HELP.includes(one))) {
    printLines(commandHelp(named, command))
    return EXIT.fine
  }
  try {
    return await command.run(rest)
  } catch (error) {
    if (error instanceof CommandFailed) {
      if (error.message !== '') complain(error.message)
      return EXIT.failure
    }
    if (!(error instanceof UsageError)) throw error
    complain(`${named}: ${error.message}`)
    complain(`See ${named} --help.`)
    return EXIT.usage
  }
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
