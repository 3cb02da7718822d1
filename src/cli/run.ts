/** Finds the command and runs it, or prints its help. */
import { CommandFailed, didYouMean, EXIT, UsageError, type CommandGroup, type Command, type Option } from './command.ts'
import { complain, print, printLines, type Terminal } from './terminal.ts'
import { PROGRAM } from './commands.ts'
import { largest } from '../core/json/extremes.ts'
import { packageVersion } from '../observe/version.ts'

const HELP = ['--help', '-h']

export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name = ''] = args
  if (!['--version', '-v', '-V'].includes(name)) return runIn('threadwarden', PROGRAM, args, terminal)
  print(terminal, packageVersion())
  return EXIT.fine
}

async function runIn(path: string, group: CommandGroup, [name, ...rest]: readonly string[], terminal: Terminal): Promise<number> {
  if (name === undefined || name === 'help' || HELP.includes(name)) {
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

const WIDTH = 120

/** Each form of a command. */
export function usageLines(path: string, { usage, positionals = {}, options }: Command): readonly string[] {
  const more = Object.keys(options).length === 0 ? '' : ' [OPTIONS]'
  const forms = usage ?? [Object.keys(positionals).join(' ')]
  return forms.map((form) => `${path}${form === '' ? '' : ` ${form}`}${more}`)
}

/** `-c, --config FILE`, and its help. */
export function optionRow(name: string, { short, placeholder, help, default: by }: Option): readonly [string, string] {
  return [
    `${short === undefined ? '' : `-${short}, `}--${name}${placeholder === undefined ? '' : ` ${placeholder}`}`,
    typeof by === 'string' ? `${help} (default: ${by})` : help,
  ]
}

export function exitCodeRows({ exitCodes }: Command): readonly (readonly [string, string])[] {
  return Object.entries({ ...exitCodes, 2: exitCodes[2] ?? 'wrong usage' })
}

export function commandHelp(path: string, command: Command): string {
  const { about, positionals = {}, options, examples } = command
  return [
    ...usageLines(path, command).map((line, at) => `${at === 0 ? 'Usage:' : '      '} ${line}`),
    '',
    ...about.split('\n\n').flatMap((paragraph) => [wrap(paragraph.replaceAll('\n', ' '), 0), '']),
    ...rows([...Object.entries(positionals), ...Object.entries(options).map(([name, option]) => optionRow(name, option))]),
    ...(Object.keys(positionals).length + Object.keys(options).length === 0 ? [] : ['']),
    examples.length === 1 ? 'Example:' : 'Examples:',
    ...examples.map((line) => `  ${line}`),
    '',
    'Exit codes:',
    ...rows(exitCodeRows(command)),
  ].join('\n')
}

export function groupHelp(path: string, { summary, about, commands }: CommandGroup): string {
  return [
    `${path}: ${summary}`,
    '',
    `Usage: ${path} COMMAND [OPTIONS]`,
    '',
    ...rows(Object.entries(commands).map(([name, command]) => [name, command.summary])),
    '',
    about,
    '',
    `${path} COMMAND --help shows the options of a command.`,
    '',
    'Exit codes: 0 success, 1 failure or findings, 2 wrong usage, 3 refused (explain), 78 invalid configuration (serve).',
  ].join('\n')
}

function rows(entries: readonly (readonly string[])[]): readonly string[] {
  const width = largest(entries.map(([name = '']) => name.length))
  return entries.map(([name = '', help = '']) => `  ${name.padEnd(width)}  ${wrap(help, width + 4)}`)
}

function wrap(text: string, indent: number): string {
  const lines = text.match(new RegExp(`\\S.{0,${WIDTH - indent - 1}}(?=\\s|$)`, 'g')) ?? []
  return lines.join(`\n${' '.repeat(indent)}`)
}
