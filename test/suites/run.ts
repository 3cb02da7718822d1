/** Runs tests: progress on the way, then each failure with its file, the slowest files and one line that sums up. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import type { Socket } from 'node:net'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startServer } from '../../testing/support/postgres-server.ts'
import { EXTENT } from '../../testing/support/sample.ts'
import { fileLimit, LONG_SUITES, longFiles, pairFiles, quickFiles, ROOT, sampleFiles } from './suites.ts'
import type { FileResult } from './run-files.ts'

const USAGE = `Runs the tests of this repository.

  npm test                               what has to pass in minutes
  npm run test:all                       what takes longer, and all of what npm test samples
  npm run test:suites [NAME…|FILE…]      suites by name, or files; without either, all of them
  npx tap FILE…                          files, each in a process of its own

Suites: quick, long (all others), pairs, samples, ${LONG_SUITES.map(({ name }) => name).join(', ')}

  --list   shows the files instead of running them
  --bail   starts no further file after one that failed
  --times  shows the time of every file, not only of the ten slowest
`

interface Part {
  readonly name: string
  readonly files: readonly string[]
  /** How much its tests run of what is sampled (testing/support/sample.ts). */
  readonly extent: typeof EXTENT
}

/** Those of long files first, so that short ones fill the processes at the end. */
const PARTS: readonly Part[] = [
  ...LONG_SUITES.map((suite) => ({ name: suite.name, files: longFiles(suite), extent: 'all' as const })),
  { name: 'pairs', files: pairFiles(), extent: 'others' },
  { name: 'samples', files: sampleFiles(), extent: 'all' },
  { name: 'quick', files: quickFiles(), extent: 'sample' },
]

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))

/** How many processes run files: one more than cores, because tests wait for answers and for other processes. */
const AT_ONCE = availableParallelism() + 1

/** Of the PostgreSQL server that all files share. Tests of durability start servers of their own, which write to the disk. */
const WITHOUT_DISK = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }

/** After so many files a process makes room for a new one, so that what they leave in memory does not add up. */
const FILES_OF_A_PROCESS = 60

/**
 * How long a process may take to end when its files are over: what takes longer was left open by one of them. As much longer than its
 * own limit may a file take, because a file that does not let the event loop turn cannot be stopped from within.
 */
const END_MS = 60_000

/**
 * The folders of tests are in memory where the system offers it, and much of it. Tests end processes, never the machine, so that they
 * lose nothing by it; a commit of SQLite waits for the disk otherwise.
 */
const MEMORY = '/dev/shm'
const MUCH = 4 * 2 ** 30

function makeTemporary(): string | null {
  if (!existsSync(MEMORY)) return null
  const { bavail, bsize } = statfsSync(MEMORY)
  if (bavail * bsize < MUCH) return null
  const folder = mkdtempSync(join(MEMORY, 'threadwarden-tests-'))
  // Servers that tests start run as other users.
  chmodSync(folder, 0o711)
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  return folder
}

/** Every how many files there is a line of progress where the output is no terminal. */
const SOME = 40

/** The files of all parts wait together, so that no process is idle while a part ends with one long file. */
async function run(parts: readonly Part[], postgres: string, onFailure: 'goes on' | 'stops'): Promise<readonly FileResult[]> {
  const queues = (['all', 'others', 'sample'] as const).map((extent) => ({
    extent,
    waiting: parts.filter((part) => part.extent === extent).flatMap(({ files }) => files),
    // A file that passed may be told again, when its process has ended badly.
    results: new Map<string, FileResult>(),
  }))
  const total = queues.reduce((sum, { waiting }) => sum + waiting.length, 0)
  const results = (): readonly FileResult[] => queues.flatMap((queue) => [...queue.results.values()])
  const lane = async (): Promise<void> => {
    for (;;) {
      const queue = queues.find(({ waiting }) => waiting.length > 0)
      if (queue === undefined) return
      const environment = { ...process.env, THREADWARDEN_TEST_POSTGRES: postgres, THREADWARDEN_TEST_EXTENT: queue.extent }
      await runProcess(queue.waiting, environment, fileLimit(queue.extent), (result) => {
        queue.results.set(result.file, result)
        if (!result.passed) process.stdout.write(`${result.file} failed\n`)
        if (!result.passed && onFailure === 'stops') for (const { waiting } of queues) waiting.length = 0
        tell(results(), total)
      })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
  return results()
}

/**
 * Takes files from those that wait, until none does or the process has had its number of them. A file that failed is the last of its
 * process, because of what it may have left there.
 */
async function runProcess(
  waiting: string[],
  environment: NodeJS.ProcessEnv,
  fileLimitMs: number,
  onResult: (result: FileResult) => void,
): Promise<void> {
  const child = spawn(process.execPath, [WORKER], {
    cwd: ROOT,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close') as Promise<[number | null, string | null]>
  let written: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => written.push(...text.trimEnd().split('\n')))
  }
  const channel = child.stdio[3] as Socket
  // A process that dies while a name is written: its end says what there is to say.
  channel.on('error', () => {})
  let file = waiting.shift()
  let files = 1
  let last: FileResult | undefined
  let timer: NodeJS.Timeout | undefined
  const endsWithin = (limit: number): void => {
    clearTimeout(timer)
    timer = setTimeout(() => child.kill('SIGKILL'), limit)
  }
  channel.write(`${file}\n`)
  endsWithin(fileLimitMs + END_MS)
  for await (const line of createInterface({ input: channel })) {
    const result = JSON.parse(line) as FileResult
    onResult({ ...result, said: [...result.said, ...written] })
    written = []
    last = result
    file = result.passed && files < FILES_OF_A_PROCESS ? waiting.shift() : undefined
    files += 1
    if (file === undefined) channel.end()
    else channel.write(`${file}\n`)
    // Before the loop ends: it lasts as long as the process, which a test that waits for ever keeps running.
    endsWithin(file === undefined ? END_MS : fileLimitMs + END_MS)
  }
  const [code, signal] = await closed
  clearTimeout(timer)
  const end = `not ok - the process ended with ${signal ?? `exit code ${code}`}`
  if (file !== undefined) onResult({ file, passed: false, seconds: 0, said: [end, ...written] })
  else if (last?.passed === true && code !== 0) {
    const said = [`${end}: one of its ${files - 1} files, of which this was the last, left something open`, ...written]
    onResult({ file: last.file, passed: false, seconds: 0, said })
  }
}

function tell(results: readonly FileResult[], total: number): void {
  const failed = results.filter(({ passed }) => !passed).length
  const text = `${results.length} of ${total} files, ${failed} failed`
  const isLast = results.length === total
  if (process.stdout.isTTY) process.stdout.write(`\r${text}${isLast ? '\n' : ''}`)
  else if (isLast || results.length % SOME === 0) process.stdout.write(`${text}\n`)
}

/** The most lines that are shown of one failed file. */
const MOST_LINES = 120

function showFailure({ file, said }: FileResult): void {
  process.stdout.write(`\nfailed: ${file}    (again: npx tap ${file})\n`)
  const lines = said.flatMap((line, at) => (/^\s*not ok/.test(line) ? said.slice(at, at + 30) : []))
  process.stdout.write(`${(lines.length === 0 ? said : lines).slice(0, MOST_LINES).join('\n')}\n`)
}

function sumUp(results: readonly FileResult[], began: number, shown: number): void {
  const failed = results.filter(({ passed }) => !passed)
  for (const result of failed) showFailure(result)
  const slowest = results.toSorted((a, b) => b.seconds - a.seconds).slice(0, shown)
  process.stdout.write('\nslowest files:\n')
  for (const { file, seconds } of slowest) process.stdout.write(`${seconds.toFixed(1).padStart(7)} s  ${file}\n`)
  const took = Math.round((Date.now() - began) / 1000)
  const time = `${Math.floor(took / 60)} min ${took % 60} s`
  process.stdout.write(`\n${results.length} files, ${results.length - failed.length} passed, ${failed.length} failed, ${time}\n`)
}

/** Tests of the demo install what is missing: with other packages they would replace these while tests run (scripts/setup.mjs). */
function isInstalled(): boolean {
  const stamp = join(ROOT, 'node_modules/.threadwarden-setup')
  const lock = createHash('sha256').update(readFileSync(join(ROOT, 'package-lock.json')))
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === lock.digest('hex')
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      list: { type: 'boolean', default: false },
      bail: { type: 'boolean', default: false },
      times: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
  const named = positionals.filter((name) => existsSync(join(ROOT, name)))
  const unknown = positionals.find(
    (name) => !named.includes(name) && name !== 'long' && PARTS.every((part) => part.name !== name),
  )
  if (unknown !== undefined) {
    process.stderr.write(`there is no suite and no file ${unknown}\n\n${USAGE}`)
    return 2
  }
  const isAsked = (name: string): boolean => positionals.includes(name) || (positionals.includes('long') && name !== 'quick')
  const suites = PARTS.filter(({ name }) => positionals.length === 0 || isAsked(name))
  const parts = named.length === 0 ? suites : [...suites, { name: 'files', files: named, extent: EXTENT }]
  if (values.list) {
    for (const { name, files } of parts) process.stdout.write(`${name}\n${files.map((file) => `  ${file}\n`).join('')}`)
    return 0
  }
  if (!isInstalled()) {
    process.stderr.write('the installed packages are not those of package-lock.json: run npm run setup\n')
    return 2
  }
  const began = Date.now()
  const temporary = makeTemporary()
  if (temporary !== null) process.env['TMPDIR'] = temporary
  const configured = process.env['THREADWARDEN_TEST_POSTGRES']
  const server = configured === undefined ? await startServer({ settings: WITHOUT_DISK }) : null
  const postgres = configured ?? `postgres://postgres@127.0.0.1:${server?.port}/postgres`
  let results: readonly FileResult[] = []
  try {
    results = await run(parts, postgres, values.bail ? 'stops' : 'goes on')
  } finally {
    await server?.remove()
  }
  sumUp(results, began, values.times ? results.length : 10)
  return results.every(({ passed }) => passed) ? 0 : 1
}

process.exitCode = await main()
