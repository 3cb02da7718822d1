/** Takes rules out of the gateway, one at a time, and looks whether the tests notice: testing/removed-rules.ts. */
import { spawn } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runCommand, UsageError } from '../testing/command.ts'
import { RULES, type RemovableRule, withoutRule } from '../testing/removed-rules.ts'

const USAGE = `Takes ${RULES.length} rules out of the gateway, one at a time, and looks whether the tests notice.

  npm run removed-rules -- [--only TEXT] [--quick]

  --only   only rules whose file or name contains this
  --quick  the tests of npm test alone. Otherwise what they do not notice goes on to those of npm run test:all

Works on a copy of this checkout. Exit code: 0 all were noticed, 1 one was not, 2 wrong usage.
`

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const NOT_COPIED = /(?:^|\/)(?:node_modules|\.git|\.tap|dist)$/

interface Outcome {
  readonly passed: boolean
  readonly output: string
}

function copyOfCheckout(): string {
  const folder = mkdtempSync(join(tmpdir(), 'threadwarden-removed-rules-'))
  cpSync(ROOT, folder, { recursive: true, filter: (from) => !NOT_COPIED.test(from) })
  for (const modules of globSync(['node_modules', 'examples/node_modules', 'examples/*/node_modules'], { cwd: ROOT })) {
    symlinkSync(join(ROOT, modules), join(folder, modules))
  }
  return folder
}

async function npm(folder: string, ...words: readonly string[]): Promise<Outcome> {
  const child = spawn('npm', ['run', '--silent', ...words], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  return { passed: code === 0, output }
}

/** @returns the suite and the file that noticed, or null */
async function noticed(folder: string, { first }: RemovableRule, onlyQuick: boolean): Promise<string | null> {
  const { output: list } = await npm(folder, 'test:suites', 'quick', '--', '--list')
  const quick = new Set(list.split('\n').map((line) => line.trim()))
  const likely = globSync(first, { cwd: folder }).filter((file) => quick.has(file))
  const stages = [
    { name: 'npm test', words: ['test:suites', ...likely, '--', '--bail'] },
    { name: 'npm test', words: ['test:suites', 'quick', '--', '--bail'] },
    ...(onlyQuick ? [] : [{ name: 'npm run test:all', words: ['test:suites', 'long', '--', '--bail'] }]),
  ].filter(({ words }) => words.length > 3)
  for (const { name, words } of stages) {
    const { passed, output } = await npm(folder, ...words)
    if (!passed) return `${name}: ${/^failed: (\S+)/m.exec(output)?.[1] ?? output.slice(-500)}`
  }
  return null
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
  const { only = '' } = values
  const rules = RULES.filter(({ rule, file }) => rule.includes(only) || file.includes(only))
  if (rules.length === 0) throw new UsageError(`no rule and no file contains ${only}`)
  if (!existsSync(join(ROOT, 'node_modules'))) throw new UsageError('nothing is installed: run npm run setup')
  const folder = copyOfCheckout()
  const found = { quick: 0, all: 0 }
  try {
    for (const [at, rule] of rules.entries()) {
      const path = join(folder, 'src', rule.file)
      const text = readFileSync(path, 'utf8')
      writeFileSync(path, withoutRule(text, rule))
      await npm(folder, 'build')
      const by = await noticed(folder, rule, values.quick)
      writeFileSync(path, text)
      if (by !== null) found.all += 1
      if (by?.startsWith('npm test:') === true) found.quick += 1
      process.stdout.write(`${at + 1} of ${rules.length}  ${rule.file}: ${rule.rule}\n    ${by ?? 'NOT NOTICED'}\n`)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  process.stdout.write(`${rules.length} rules, ${found.quick} noticed by npm test, ${found.all} by all tests\n`)
  return found.all === rules.length ? 0 : 1
}

await runCommand(main, USAGE)
