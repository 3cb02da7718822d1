/** The part `signals`: what metrics, the audit and traces cost a request. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { thisMachine, today } from './machine.ts'
import type { BenchOptions, Part } from './part.ts'
import type { Helper } from './processes.ts'
import { switchedRow } from './requests/gateway.ts'
import type { LoadOrder, Round, RoundOrder } from './requests/generator.ts'
import { LOADS } from './requests/loads.ts'
import { makeStarter } from './requests/starting.ts'
import { makeScratch } from './scratch.ts'
import type { Served } from './serving.ts'
import { signalsTable } from './signals/report.ts'
import { SIGNALS, type MeasuredSignals, type Signal, type SignalsResult } from './signals/result.ts'
import { SLICES_FILE, type Slice } from './signals/slices.ts'

const CONNECTIONS = 32
const UPSTREAM_CONNECTIONS = 256

/** Of each process and load. */
const ROUNDS = 40

const SECONDS = 0.5

/** Processes, one after the other. */
const STARTS = 3

/** How often it is looked whether the process has switched, in milliseconds. */
const LOOK_EVERY = 2

const LOAD_NAMES = ['get', 'run'] as const

export const signals: Part<SignalsResult> = {
  about: 'what metrics, the audit, and traces of 10 % of the requests cost a request',
  run,
  table: signalsTable,
}

async function run({ rounds: wanted, seconds: length, warmUp, keep, progress }: BenchOptions): Promise<SignalsResult> {
  const scratch = makeScratch(keep)
  const starter = makeStarter(scratch.folder, UPSTREAM_CONNECTIONS)
  const rounds = wanted ?? ROUNDS
  const seconds = length ?? SECONDS
  const measured = LOAD_NAMES.map((load) => ({ load, cpus: [] as MeasuredSignals['cpus'][number][] }))
  try {
    const upstream = await starter.helper('requests/stub-upstream.ts')
    const generator = await starter.helper('requests/generator.ts')
    progress.begin('signals, rounds', STARTS * LOAD_NAMES.length * rounds)
    for (let start = 0; start < STARTS; start += 1) {
      const { proxy } = await starter.row(switchedRow, upstream)
      const subject = { generator, proxy, slices: 0 }
      for (const [at, { load, cpus }] of measured.entries()) {
        await generator.ask({ requests: LOADS[load].make(starter.token) } satisfies LoadOrder)
        // The signals share it.
        await measureRound(subject, warmUp / SIGNALS.length)
        for (let round = 0; round < rounds; round += 1) {
          cpus.push(await measureRound(subject, seconds))
          progress.at((start * LOAD_NAMES.length + at) * rounds + round + 1)
        }
      }
      await proxy.stop()
    }
    return { date: today(), machine: thisMachine(), rounds, seconds, starts: STARTS, connections: CONNECTIONS, measured }
  } finally {
    progress.end()
    await starter.stop()
    scratch.remove()
  }
}

interface Subject {
  readonly generator: Helper
  readonly proxy: Served
  /** That have ended so far. */
  slices: number
}

/** The load goes on while the process switches: a pause would take CPU of its own. */
async function measureRound(subject: Subject, seconds: number): Promise<Record<Signal, number>> {
  const milliseconds = 1000 * seconds
  const order = { port: subject.proxy.port, connections: CONNECTIONS, milliseconds: milliseconds * SIGNALS.length }
  const load = subject.generator.ask<Round>(order satisfies RoundOrder)
  const cpus = { none: 0, metrics: 0, audit: 0, traces: 0 }
  for (const [at] of SIGNALS.entries()) {
    // The last slice ends with the load.
    await (at + 1 < SIGNALS.length ? sleep(milliseconds) : load)
    const { signal, cpu, requests } = await endSlice(subject)
    cpus[signal] = cpu / requests
  }
  const { bad, firstBad } = await load
  if (bad > 0) throw new Error(`${bad} bad answers: ${firstBad}`)
  return cpus
}

async function endSlice(subject: Subject): Promise<Slice> {
  const { pid, config } = subject.proxy
  process.kill(pid, 'SIGUSR2')
  for (;;) {
    await sleep(LOOK_EVERY)
    const line = linesOf(join(dirname(config), SLICES_FILE))[subject.slices]
    if (line === undefined) continue
    subject.slices += 1
    return JSON.parse(line) as Slice
  }
}

/** Those that are complete. */
function linesOf(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
}
