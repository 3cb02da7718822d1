/** Runs tests: progress on the way, then each failure with its file, the slowest files and one line that sums up. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { startServer } from '../../testing/support/postgres-server.ts'
import { LONG_SUITES, longFiles, pairFiles, quickFiles, ROOT } from './suites.ts'

const USAGE = `Runs the tests of this repository.

  npm test                               what has to pass in minutes
  npm run test:all                       what takes longer, and every pair of transports
  npm run test:suites [NAME…]            suites by name; without a name all of them
  npx tap FILE…                          files

Suites: quick, long (all others), pairs, ${LONG_SUITES.map(({ name }) => name).join(', ')}

  --list  shows the files instead of running them
`

interface Part {
  readonly name: string
  readonly files: readonly string[]
  readonly environment: Readonly<Record<string, string>>
}

interface FileResult {
  readonly file: string
  readonly passed: boolean
  readonly seconds: number
}

const PARTS: readonly Part[] = [
  { name: 'quick', files: quickFiles(), environment: {} },
  { name: 'pairs', files: pairFiles(), environment: { THREADWARDEN_TEST_PAIRS: 'all' } },
  ...LONG_SUITES.map((suite) => ({ name: suite.name, files: longFiles(suite), environment: {} })),
]

/** A result of tap: `ok 12 - test/core/json.test.ts # time=123.4ms`. */
const RESULT = /^(not )?ok \d+ - (test\/\S+) # (?:time=([\d.]+)(m?s))?/

/** Every how many files there is a line of progress where the output is no terminal. */
const SOME = 40

async function run(part: Part, postgres: string): Promise<readonly FileResult[]> {
  const results: FileResult[] = []
  if (part.files.length === 0) return results
  const child = spawn('tap', ['--reporter=tap', ...part.files], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, THREADWARDEN_TEST_POSTGRES: postgres, ...part.environment },
  })
  const ended = new Promise<void>((resolve, reject) => child.once('error', reject).once('close', () => resolve()))
  for await (const line of createInterface({ input: child.stdout })) {
    const [, failed, file, time, unit] = RESULT.exec(line) ?? []
    if (file === undefined) continue
    results.push({ file, passed: failed === undefined, seconds: Number(time ?? 0) / (unit === 'ms' ? 1000 : 1) })
    tell(part, results)
  }
  await ended
  const missing = part.files.filter((file) => !results.some((result) => result.file === file))
  return [...results, ...missing.map((file) => ({ file, passed: false, seconds: 0 }))]
}

function tell({ name, files }: Part, results: readonly FileResult[]): void {
  const failed = results.filter(({ passed }) => !passed).length
  const text = `${name}: ${results.length} of ${files.length} files, ${failed} failed`
  const isLast = results.length === files.length
  if (process.stdout.isTTY) process.stdout.write(`\r${text}${isLast ? '\n' : ''}`)
  else if (isLast || results.length % SOME === 0) process.stdout.write(`${text}\n`)
}

/** The most lines that are shown of one failed file. */
const MOST_LINES = 120

function showFailure(file: string): void {
  process.stdout.write(`\nfailed: ${file}    (again: npx tap ${file})\n`)
  let said: readonly string[]
  try {
    said = readFileSync(join(ROOT, '.tap/test-results', `${file}.tap`), 'utf8').split('\n')
  } catch {
    process.stdout.write('  it left no result\n')
    return
  }
  const lines = said.flatMap((line, at) => (/^\s*not ok/.test(line) ? said.slice(at, at + 30) : []))
  process.stdout.write(`${(lines.length === 0 ? said : lines).slice(0, MOST_LINES).join('\n')}\n`)
}

function sumUp(results: readonly FileResult[], began: number): void {
  const failed = results.filter(({ passed }) => !passed)
  for (const { file } of failed) showFailure(file)
  const slowest = results.toSorted((a, b) => b.seconds - a.seconds).slice(0, 10)
  process.stdout.write('\nslowest files:\n')
  for (const { file, seconds } of slowest) process.stdout.write(`${seconds.toFixed(1).padStart(7)} s  ${file}\n`)
  const took = Math.round((Date.now() - began) / 1000)
  const time = `${Math.floor(took / 60)} min ${took % 60} s`
  process.stdout.write(`\n${results.length} files, ${results.length - failed.length} passed, ${failed.length} failed, ${time}\n`)
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { list: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
  })
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
  const unknown = positionals.find((name) => name !== 'long' && !PARTS.some((part) => part.name === name))
  if (unknown !== undefined) {
    process.stderr.write(`there is no suite ${unknown}\n\n${USAGE}`)
    return 2
  }
  const isAsked = (name: string): boolean => positionals.includes(name) || (positionals.includes('long') && name !== 'quick')
  const parts = PARTS.filter(({ name }) => positionals.length === 0 || isAsked(name))
  if (values.list) {
    for (const { name, files } of parts) process.stdout.write(`${name}\n${files.map((file) => `  ${file}\n`).join('')}`)
    return 0
  }
  const began = Date.now()
  const named = process.env['THREADWARDEN_TEST_POSTGRES']
  const server = named === undefined ? await startServer({}) : null
  const postgres = named ?? `postgres://postgres@127.0.0.1:${server?.port}/postgres`
  const results: FileResult[] = []
  try {
    for (const part of parts) results.push(...(await run(part, postgres)))
  } finally {
    await server?.remove()
  }
  sumUp(results, began)
  return results.every(({ passed }) => passed) ? 0 : 1
}

process.exitCode = await main()
