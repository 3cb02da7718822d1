/** Writes docs/reference/cli.md from the table of commands, or with --check says whether it still fits. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Command, CommandGroup } from '../src/cli/command.ts'
import { PROGRAM } from '../src/cli/commands.ts'
import { exitCodeRows, optionRow, usageLines } from '../src/cli/run.ts'

const PAGE = new URL('../docs/reference/cli.md', import.meta.url)

const HEAD = `<!-- Written by scripts/cli-reference.ts from src/cli: change that, and run npm run cli-reference. -->

# Command line

After reading this page you can look up every command of \`threadwarden\`, with its options, exit codes and examples. \`threadwarden COMMAND --help\` prints the same text.

The examples call \`threadwarden\`. The [installation](../how-to/deploy/in-front-of-a-runtime.md#1-install) makes this command available.

## Rules for all commands

- **Configuration**: a command reads the file that \`--config\` (\`-c\`) names. Without the option it reads the file that the environment variable \`THREADWARDEN_CONFIG\` names, or \`threadwarden.yaml\` in the working directory.
- **Output**: results go to stdout, errors, warnings and progress to stderr. With \`--json\`, stdout has only JSON.
- **Closed output**: if the reader of stdout closes it early, as \`head\` does, the command ends with exit code 1.
- **Errors**: an error in a file names the file, the line, the key and the fix. List items in the path of a key are counted from 0: \`rules.0\` is the first rule.
- **Colours**: on a terminal, outcomes, problems, warnings and errors have colours. \`NO_COLOR=1\` switches colours off. \`FORCE_COLOR=1\` switches them on where the output is not a terminal. JSON never has colours.
- **Version**: \`threadwarden --version\` (\`-v\`) prints the version.
- **Completion**: [threadwarden completion](#threadwarden-completion) prints scripts for bash, zsh and fish.

## Exit codes

| Code | Meaning |
| --- | --- |
| 0 | success |
| 1 | the command failed, or it has findings: errors, differences, failed tests, conflicts |
| 2 | wrong usage: the command did nothing |
| 3 | only \`explain\`: the gateway refuses the request, or the audit line is not decided as before |
| 78 | only \`serve\`: the configuration is invalid. 78 is \`EX_CONFIG\` of sysexits(3) |

The section of each command says what its codes mean.
`

interface Named {
  readonly path: string
  readonly summary: string
  readonly command: Command
}

async function commandsIn({ commands }: CommandGroup, path: string): Promise<readonly Named[]> {
  const below = Object.entries(commands).map(async ([name, entry]) => {
    const named = `${path} ${name}`
    if ('commands' in entry) return commandsIn(entry, named)
    return [{ path: named, summary: entry.summary, command: (await entry.load()).command }]
  })
  return (await Promise.all(below)).flat()
}

/** A `|` would end the cell. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

function code(text: string): string {
  return `\`${cell(text)}\``
}

function table(head: readonly [string, string], rows: readonly (readonly [string, string])[]): string {
  return [`| ${head.join(' | ')} |`, '| --- | --- |', ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n')
}

/** In prose, `<` would begin a tag. */
function prose(text: string): string {
  return text
    .split('\n\n')
    .map((paragraph) => paragraph.replaceAll('\n', ' ').replaceAll(/<(\([^)]*\))/g, '`<$1`'))
    .join('\n\n')
}

function sectionOf({ path, command }: Named): string {
  const { about, positionals = {}, options, examples } = command
  const operands = Object.entries(positionals).map(([name, help]) => [code(name), cell(help)] as const)
  const flags = Object.entries(options).map(([name, option]) => {
    const [form, help] = optionRow(name, option)
    return [code(form), cell(help)] as const
  })
  const codes = exitCodeRows(command).map(([number, meaning]) => [number, cell(meaning)] as const)
  return [
    `## ${path}`,
    prose(about),
    ['```text', ...usageLines(path, command), '```'].join('\n'),
    ...(operands.length === 0 ? [] : [table(['Argument', 'Meaning'], operands)]),
    ...(flags.length === 0 ? [] : [table(['Option', 'Meaning'], flags)]),
    table(['Exit code', 'Meaning'], codes),
    [examples.length === 1 ? 'Example:' : 'Examples:', '', '```text', ...examples, '```'].join('\n'),
  ].join('\n\n')
}

const commands = await commandsIn(PROGRAM, 'threadwarden')
const list = commands.map(({ path, summary }) => [`[${path}](#${path.replaceAll(' ', '-')})`, cell(summary)] as const)
const text = `${[HEAD.trimEnd(), '## Commands', table(['Command', 'Purpose'], list), ...commands.map(sectionOf)].join('\n\n')}\n`
if (!process.argv.includes('--check')) writeFileSync(PAGE, text)
else if (readFileSync(PAGE, 'utf8') !== text) {
  process.stderr.write('docs/reference/cli.md does not fit its source: run npm run cli-reference\n')
  process.exitCode = 1
}
