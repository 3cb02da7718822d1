/** Writes the help of commands and groups from their declarations. */
import { largest } from '../core/json/extremes.ts'
import type { Command, CommandGroup } from './command.ts'

const WIDTH = 120

export function commandHelp(path: string, { usage, about, positionals = {}, options, exitCodes }: Command): string {
  const config = 'config' in options ? ' --config FILE' : ''
  const more = Object.keys(options).some((name) => name !== 'config') ? ' [OPTIONS]' : ''
  const forms = usage ?? [Object.keys(positionals).join(' ')]
  const named = Object.entries(options).map(([name, { placeholder, help, default: by }]) => [
    `--${name}${placeholder === undefined ? '' : ` ${placeholder}`}`,
    typeof by === 'string' ? `${help} (default: ${by})` : help,
  ])
  const [fine, failure, wrong = 'wrong usage'] = exitCodes
  return [
    ...forms.map((form, at) => `${at === 0 ? 'Usage:' : '      '} ${path}${form === '' ? '' : ` ${form}`}${config}${more}`),
    '',
    ...about.split('\n\n').flatMap((paragraph) => [wrap(paragraph.replaceAll('\n', ' '), 0), '']),
    ...rows([...Object.entries(positionals), ...named]),
    '',
    wrap(`Exit codes: 0 ${fine}, 1 ${failure}, 2 ${wrong}.`, 0),
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
    'Exit codes: 0 fine, 1 findings or failure, 2 wrong usage.',
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
