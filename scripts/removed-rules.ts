/** Takes rules out of the gateway, one at a time, and looks whether the tests notice: testing/removed-rules.ts. */
import { spawn } from 'node:child_process'
import { chmodSync, cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
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

A file that fails counts only if it passes where no rule is removed. Works on copies of this checkout. Exit code: 0 all were noticed, 1 one was not, 2 wrong usage.
`

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const NOT_COPIED = /(?:^|\/)(?:node_modules|\.git|\.tap|dist)$/

interface Outcome {
  readonly passed: boolean
  readonly output: string
}

function copyOfCheckout(): string {
  const folder = mkdtempSync(join(tmpdir(), 'threadwarden-removed-rules-'))
  // Some tests run the gateway as another user.
  chmodSync(folder, 0o755)
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

interface Copies {
  /** With the rule removed. */
  readonly without: string
  /** As it is. */
  readonly unchanged: string
}

/** @returns the suite and the file that noticed, or null */
async function noticed({ without, unchanged }: Copies, { first }: RemovableRule, onlyQuick: boolean): Promise<string | null> {
  const { output: list } = await npm(without, 'test:suites', 'quick', '--', '--list')
  const quick = new Set(list.split('\n').map((line) => line.trim()))
  const likely = globSync(first, { cwd: without }).filter((file) => quick.has(file))
  const stages = [
    ...(likely.length === 0 ? [] : [{ name: 'npm test', words: [...likely, '--', '--bail'] }]),
    { name: 'npm test', words: ['quick'] },
    ...(onlyQuick ? [] : [{ name: 'npm run test:all', words: ['long'] }]),
  ]
  for (const { name, words } of stages) {
    const { passed, output } = await npm(without, 'test:suites', ...words)
    if (passed) continue
    const failed = Array.from(output.matchAll(/^failed: (\S+)/gm), ([, file]) => file ?? '')
    if (failed.length === 0) throw new Error(`${words.join(' ')} failed: ${output.slice(-500)}`)
    for (const file of failed) if ((await npm(unchanged, 'test:suites', file)).passed) return `${name}: ${file}`
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
  const copies = { without: copyOfCheckout(), unchanged: copyOfCheckout() }
  const found = { quick: 0, all: 0 }
  try {
    await npm(copies.unchanged, 'build')
    for (const [at, rule] of rules.entries()) {
      const path = join(copies.without, 'src', rule.file)
      const text = readFileSync(path, 'utf8')
      writeFileSync(path, withoutRule(text, rule))
      await npm(copies.without, 'build')
      const by = await noticed(copies, rule, values.quick)
      writeFileSync(path, text)
      if (by !== null) found.all += 1
      if (by?.startsWith('npm test:') === true) found.quick += 1
      process.stdout.write(`${at + 1} of ${rules.length}  ${rule.file}: ${rule.rule}\n    ${by ?? 'NOT NOTICED'}\n`)
    }
  } finally {
    for (const folder of Object.values(copies)) rmSync(folder, { recursive: true, force: true })
  }
  process.stdout.write(`${rules.length} rules, ${found.quick} noticed by npm test, ${found.all} by all tests\n`)
  return found.all === rules.length ? 0 : 1
}

await runCommand(main, USAGE)
