/** Runs the fuzzer on one target for so much time of the processor, with its committed corpus, and minimises what it kept. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { readCorpus, writeCorpus } from '../../testing/fuzz/corpora.ts'
import { loadTarget, type TargetName } from '../../testing/fuzz/targets.ts'
import { findingIn, NO_PROGRESS, progressOf, type Progress, type TargetFigures } from '../../testing/coverage-fuzz/figures.ts'
import { fitToOldLibc } from './old-libc.ts'

/** Where inputs are kept that break a property. */
export const FINDINGS = fileURLToPath(new URL('fuzzer/findings/', import.meta.url))

const CHILD = fileURLToPath(new URL('child.ts', import.meta.url))
const ADDON = new URL('fuzzer/node_modules/@jazzer.js/fuzzer/prebuilds/', import.meta.url)
/** The first glibc that the addon runs on as it is. */
const NEW_LIBC = [2, 38] as const

/** No input is longer, in bytes. */
const MOST_LENGTH = 4096
/** Seconds after which a process is started anew: what libraries keep would else grow for hours. */
const MOST_SECONDS = 600
const LEAST_SECONDS = 5
/** Lines of what a process wrote that are kept to tell of it. */
const KEPT_LINES = 200

/** How to run. */
export interface RunOptions {
  /** Seconds of the processor. */
  readonly seconds: number
  /** For the choices of the fuzzer. */
  readonly seed: number
  /** Whether the corpus is written, minimised. */
  readonly keep: boolean
  readonly onProgress: (target: TargetName, progress: Progress) => void
}

/** What came of it, with the file of the input that breaks a property. */
export interface TargetResult {
  readonly figures: TargetFigures
  readonly reproducer: string | null
}

/** Makes the addon loadable where the C library is older than the one that it was linked with. */
export function fitAddon(): void {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  const [major = 0, minor = 0] = header.glibcVersionRuntime?.split('.').map(Number) ?? NEW_LIBC
  if (major > NEW_LIBC[0] || (major === NEW_LIBC[0] && minor >= NEW_LIBC[1])) return
  fitToOldLibc(fileURLToPath(new URL(`fuzzer-linux-${process.arch}.node`, ADDON)))
}

/** Fuzzes a target until the time is over, or something is found. */
export async function fuzz(target: TargetName, { seconds, seed, keep, onProgress }: RunOptions): Promise<TargetResult> {
  const folder = mkdtempSync(join(tmpdir(), 'threadwarden-fuzz-'))
  const tidy = (): void => rmSync(folder, { recursive: true, force: true })
  process.once('exit', tidy)
  try {
    const [corpus, minimised, dictionary] = [join(folder, 'corpus'), join(folder, 'minimised'), join(folder, 'words')]
    for (const one of [corpus, minimised, FINDINGS]) mkdirSync(one, { recursive: true })
    const { words, seeds } = await loadTarget(target)
    const begun = [...readCorpus(target), ...seeds.map((seed) => Buffer.from(seed, 'latin1'))]
    for (const [at, input] of begun.entries()) writeFileSync(join(corpus, String(at)), input)
    writeFileSync(dictionary, words.map(dictionaryLine).join(''))
    const limits = [`-max_len=${MOST_LENGTH}`, '-rss_limit_mb=4096', `-artifact_prefix=${FINDINGS}${target}-`]

    const started = performance.now()
    let done = NO_PROGRESS
    let first = 0
    let finding: Finding | null = null
    for (let round = 0; done.cpu < seconds - 1 && finding === null; round += 1) {
      // libFuzzer counts the time of the day: what of it the processor was busy elsewhere was seen in the rounds before.
      const pace = done.cpu === 0 ? 1 : (performance.now() - started) / 1000 / done.cpu
      const time = Math.ceil(Math.min(Math.max((seconds - done.cpu) * pace, LEAST_SECONDS), MOST_SECONDS))
      const before = done
      const options = [`-max_total_time=${time}`, `-seed=${seed + round}`, `-dict=${dictionary}`, '-use_value_profile=1']
      const ended = await runChild(target, [corpus, ...options, ...limits], (now) => {
        done = { ...now, cpu: before.cpu + now.cpu, executions: before.executions + now.executions }
        if (first === 0) first = now.inputs
        onProgress(target, done)
      })
      finding = ended.finding
    }
    if (keep && finding === null) {
      await runChild(target, ['-merge=1', minimised, corpus, ...limits], () => {})
      writeCorpus(
        target,
        readdirSync(minimised).map((name) => readFileSync(join(minimised, name))),
      )
    }
    const { cpu, executions, reached, branches, inputs } = done
    const found = Math.max(0, inputs - first)
    const message = finding?.message ?? null
    const figures = { target, cpu: Math.round(cpu), executions, reached, branches, begun: begun.length, found, finding: message }
    return { figures, reproducer: finding?.file ?? null }
  } finally {
    process.off('exit', tidy)
    tidy()
  }
}

interface Finding {
  readonly message: string
  readonly file: string
}

/** Runs one process to its end. @throws Error if it fails without an input that makes it fail */
async function runChild(
  target: TargetName,
  options: readonly string[],
  onProgress: (progress: Progress) => void,
): Promise<{ readonly finding: Finding | null }> {
  const known = new Set(readdirSync(FINDINGS))
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', CHILD, target, '--', ...options], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  // Asked to end, it would keep the input that it is at as one that ends it.
  const stop = (): void => void child.kill('SIGKILL')
  process.once('exit', stop)
  const code = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  let progress = NO_PROGRESS
  const lines: string[] = []
  for await (const line of createInterface(child.stderr)) {
    lines.push(line)
    if (lines.length > KEPT_LINES) lines.shift()
    const now = progressOf(line, progress)
    if (now === progress) continue
    progress = now
    onProgress(progress)
  }
  const ended = await code
  process.off('exit', stop)
  if (ended === 0) return { finding: null }
  const file = readdirSync(FINDINGS).find((name) => name.startsWith(`${target}-`) && !known.has(name))
  if (file === undefined) throw new Error(`the fuzzer of ${target} failed (${String(ended)}):\n${lines.slice(-20).join('\n')}`)
  return { finding: { message: findingIn(lines) ?? 'it takes too long, or too much memory', file: join(FINDINGS, file) } }
}

/** A word as libFuzzer reads it: its bytes as escapes. */
function dictionaryLine(word: string): string {
  return `"${Buffer.from(word, 'latin1').toString('hex').replace(/../g, '\\x$&')}"\n`
}
