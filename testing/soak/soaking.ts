/** A soak from its beginning to its end. */
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { thisMachine, today } from '../bench/machine.ts'
import { randomFrom } from '../bench/ownership/population.ts'
import { startHelper, type Started } from '../bench/processes.ts'
import { makeScratch } from '../bench/scratch.ts'
import { startServing } from '../bench/serving.ts'
import { makeAccount, totalOf } from './account.ts'
import type { Answer } from './answer.ts'
import { configurationOf, writePolicy } from './configuration.ts'
import { makeFaults, UPSTREAM } from './faults.ts'
import { figuresOf } from './figures.ts'
import { startIssuer } from './issuer.ts'
import type { Window } from './judging.ts'
import { startLoad } from './load.ts'
import { warningsIn } from './log-lines.ts'
import { OWNED } from './people.ts'
import { makeQuestions } from './questions.ts'
import type { AtRest, Sample, SoakOptions, SoakResult, TableSize } from './result.ts'
import { timesOf } from './times.ts'

/** What is told meanwhile, a line each. */
export interface ProgressReport {
  readonly line: (text: string) => void
  /** An answer that nothing explains. */
  readonly unexplained: (answer: Answer) => void
}

const PROGRAM = join(import.meta.dirname, '../../dist/cli.js')

/**
 * As a sidecar has it: the heap that Node takes in a container of 512 MiB (Node 24, measured). Left to
 * itself V8 sizes its heap by the machine, and on a large one fills it before it clears it.
 */
const SMALL = ['--max-old-space-size=256']

const SECOND = 1000

/** How long the gateway may take to come to rest when everybody has left. */
const PATIENCE = 20 * SECOND

/**
 * Runs it.
 * @param keep leaves the files of the gateway, and says where
 * @throws an Error if the gateway ends or cannot be asked for its figures
 */
export async function soak(options: SoakOptions, keep: boolean, report: ProgressReport): Promise<SoakResult> {
  const scratch = makeScratch(keep)
  const started: Pick<Started, 'stop'>[] = []
  const { folder } = scratch
  const times = timesOf(options.minutes)
  const random = randomFrom(Date.now() % 2 ** 31)
  try {
    const issuer = await startIssuer()
    started.push({ stop: async () => issuer.stop() })
    const upstream = await startHelper(UPSTREAM)
    started.push(upstream)
    mkdirSync(folder, { recursive: true })
    const setting = { folder, upstreamPort: upstream.port, jwksUri: issuer.jwksUri, workers: options.workers }
    writePolicy(folder, false)
    const gateway = await startServing({
      program: PROGRAM,
      folder,
      configuration: configurationOf(setting, '1MiB'),
      owned: OWNED,
      node: SMALL,
    })
    started.push(gateway)
    const atRest = async (): Promise<AtRest> => {
      const { files, resources, openStreams } = await figuresOf(gateway.pid, gateway.health)
      return { files, resources, openStreams }
    }
    await sleep(SECOND)
    const before = await atRest()
    const tableBefore = tableIn(folder)

    const windows: Window[] = []
    const account = makeAccount(windows, report.unexplained)
    const questions = makeQuestions({ issuer, life: times.tokenLife, random })
    const began = Date.now()
    const until = began + times.total
    const faults = makeFaults({ gateway, setting, issuer, questions, windows, upstream, began })
    started.push(faults)
    const { rate, streams } = options
    const load = startLoad({ port: gateway.port, questions, rate, streams, random, take: account.take })
    const samples: Sample[] = []
    await Promise.all([
      every(times.sample, until, async () => {
        const { rss, heap } = await figuresOf(gateway.pid, gateway.health)
        samples.push({ at: (Date.now() - began) / SECOND, rss, heap })
      }),
      every(times.tell, until, async () => report.line(lineOf(Date.now() - began, account.kinds, samples.at(-1)))),
      every(times.kill, until - times.rest, () => faults.killUpstream()),
      every(times.reload, until - times.rest, () => faults.reload()),
      every(times.rotate, until - times.rest, () => faults.rotateKeys()),
      sleep(times.total),
    ])
    await load.stop()
    const after = await rested(before, atRest)
    await faults.stop()
    await gateway.stop()
    return {
      ...{ date: today(), machine: thisMachine(), options, tokenSeconds: times.tokenLife / SECOND },
      ...{ kinds: account.kinds, examples: account.examples, heldBack: load.heldBack() },
      ...{ faults: faults.made, failedFaults: faults.failed, log: await warningsIn(gateway.logFile) },
      ...{ samples, before, after, tableBefore, tableAfter: tableIn(folder) },
      ...{ claimed: load.claimed(), firstRuns: load.asked() },
    }
  } finally {
    await Promise.all(started.map((one) => one.stop()))
    scratch.remove()
  }
}

/** Does something again and again. It takes the time that it takes, and the next one comes when its time has come again. */
async function every(milliseconds: number, until: number, work: () => Promise<void>): Promise<void> {
  for (let next = Date.now() + milliseconds; next < until; next = Math.max(next + milliseconds, Date.now())) {
    await sleep(next - Date.now())
    await work()
  }
}

/** Waits until nothing is open that was not open before, or for so long. */
async function rested(before: AtRest, look: () => Promise<AtRest>): Promise<AtRest> {
  const by = Date.now() + PATIENCE
  for (;;) {
    const now = await look()
    if ((now.openStreams === 0 && (now.files ?? 0) <= (before.files ?? 0)) || Date.now() > by) return now
    await sleep(SECOND)
  }
}

function tableIn(folder: string): TableSize {
  const file = join(folder, 'ownership.db')
  const database = new Database(file, { readonly: true })
  const { rows } = database.prepare<[], { rows: number }>('SELECT count(*) AS rows FROM threads').get()!
  database.close()
  const bytes = ['', '-wal'].reduce((sum, end) => sum + (statSync(`${file}${end}`, { throwIfNoEntry: false })?.size ?? 0), 0)
  return { rows, bytes }
}

function lineOf(passed: number, kinds: SoakResult['kinds'], sample: Sample | undefined): string {
  const { asked, explained, unexplained, wrongOwner } = totalOf(kinds)
  const mib = (bytes: number | null): string => (bytes === null ? '–' : (bytes / 2 ** 20).toFixed(0))
  const { upstream, token, reload } = explained
  return [
    `${(passed / 60_000).toFixed(1)} min: ${asked} answers,`,
    `explained by upstream ${upstream}, token ${token}, reload ${reload};`,
    `unexplained ${unexplained}, wrong owner ${wrongOwner};`,
    `${mib(sample?.rss ?? null)} MiB resident, ${mib(sample?.heap ?? null)} MiB heap and buffers`,
  ].join(' ')
}
