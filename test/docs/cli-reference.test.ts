/** The reference of the command line is that of the program, and each of its examples is a command that the program has. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { test } from 'tap'
import type { Command, CommandGroup } from '../../src/cli/command.ts'
import { PROGRAM } from '../../src/cli/commands.ts'

const page = readFileSync(new URL('../../docs/reference/cli.md', import.meta.url), 'utf8')

void test('the page is what the program writes', (t) => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/cli-reference.ts', '--check'], { encoding: 'utf8' })
  t.same({ status, stderr }, { status: 0, stderr: '' })
  t.end()
})

async function commandsIn({ commands }: CommandGroup, path: string): Promise<readonly (readonly [string, Command])[]> {
  const below = Object.entries(commands).map(async ([name, entry]) =>
    'commands' in entry ? commandsIn(entry, `${path} ${name}`) : [[`${path} ${name}`, (await entry.load()).command] as const],
  )
  return (await Promise.all(below)).flat()
}

for (const [path, command] of await commandsIn(PROGRAM, 'threadwarden')) {
  void test(`${path} has a section with its options and examples that it takes`, (t) => {
    const section = page.split(/^## /m).find((one) => one.startsWith(`${path}\n`)) ?? ''
    for (const name of Object.keys(command.options)) t.match(section, `--${name}`)
    t.ok(command.examples.length > 0)
    for (const example of command.examples) {
      t.match(section, example)
      const call = example.slice(example.indexOf(path)).replace(/ > .*/, '')
      t.ok(call.startsWith(path), example)
      const args = call.slice(path.length).split(' ').filter(Boolean)
      const { positionals } = parseArgs({ args, options: command.options, allowPositionals: true })
      t.ok(positionals.length <= Object.keys(command.positionals ?? {}).length, example)
    }
    t.end()
  })
}
