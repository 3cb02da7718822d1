/** The part `signals`: what metrics and traces cost a request. */
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuOf } from './figures.ts'
import { thisMachine, today } from './machine.ts'
import type { BenchOptions, Part } from './part.ts'
import type { Helper } from './processes.ts'
import { switchedRow } from './requests/gateway.ts'
import type { LoadOrder, Round, RoundOrder } from './requests/generator.ts'
import { LOADS } from './requests/loads.ts'
import type { Proxy } from './requests/row.ts'
import { makeStarter } from './requests/starting.ts'
import { makeScratch } from './scratch.ts'
import { signalsTable } from './signals/report.ts'
import { SIGNALS, type MeasuredSignals, type Signal, type SignalsResult } from './signals/result.ts'

const CONNECTIONS = 32
const UPSTREAM_CONNECTIONS = 256

/** Of each process and load. */
const ROUNDS = 24

const SECONDS = 0.5

/** Processes, one after the other. */
const STARTS = 3

/** Milliseconds after each load, so that the export of traces counts for the round that made them. */
const EXPORT_MS = 300

/** Milliseconds until the process has switched. */
const SWITCH_MS = 50

const LOAD_NAMES = ['get', 'run'] as const

export const signals: Part<SignalsResult> = {
  about: 'what metrics, and traces of 10 % of the requests, cost a request',
  run,
  table: signalsTable,
}

async function run({ rounds: wanted, seconds: length, warmUp, keep, progress }: BenchOptions): Promise<SignalsResult> {
  const scratch = makeScratch(keep)
  const starter = makeStarter(scratch.folder, UPSTREAM_CONNECTIONS)
  const rounds = wanted ?? ROUNDS
  const seconds = length ?? SECONDS
  const slices = LOAD_NAMES.map((load) => ({ load, cpus: [] as MeasuredSignals['cpus'][number][] }))
  try {
    const upstream = await starter.helper('requests/stub-upstream.ts')
    const generator = await starter.helper('requests/generator.ts')
    progress.begin('signals, rounds', STARTS * LOAD_NAMES.length * rounds)
    for (let start = 0; start < STARTS; start += 1) {
      const { proxy } = await starter.row(switchedRow, upstream)
      const subject = { generator, proxy, first: 0 }
      for (const [at, { load, cpus }] of slices.entries()) {
        await generator.ask({ requests: LOADS[load].make(starter.token) } satisfies LoadOrder)
        // Three signals share it.
        await measureRound(subject, warmUp / SIGNALS.length)
        for (let round = 0; round < rounds; round += 1) {
          cpus.push(await measureRound(subject, seconds))
          progress.at((start * LOAD_NAMES.length + at) * rounds + round + 1)
        }
      }
      await proxy.stop()
    }
    const effort = { rounds, seconds, starts: STARTS, connections: CONNECTIONS }
    return { date: today(), machine: thisMachine(), ...effort, measured: slices }
  } finally {
    progress.end()
    await starter.stop()
    scratch.remove()
  }
}

interface Subject {
  readonly generator: Helper
  readonly proxy: Proxy
  /** The index of the signal that is on: the first of the next round. */
  first: number
}

/** Each round begins with another signal. */
async function measureRound(subject: Subject, seconds: number): Promise<Record<Signal, number>> {
  const { generator, proxy } = subject
  const cpus = { none: 0, metrics: 0, traces: 0 }
  for (const [turn] of SIGNALS.entries()) {
    const signal = SIGNALS[(subject.first + turn) % SIGNALS.length] ?? 'none'
    const before = cpuOf(proxy.pid)
    const order = { port: proxy.port, connections: CONNECTIONS, milliseconds: 1000 * seconds } satisfies RoundOrder
    const { count, bad, firstBad } = await generator.ask<Round>(order)
    if (bad > 0) throw new Error(`${bad} bad answers: ${firstBad}`)
    await sleep(EXPORT_MS)
    const after = cpuOf(proxy.pid)
    if (before === null || after === null) throw new Error('the CPU of other processes is available on Linux only')
    cpus[signal] = (after - before) / count
    await switchOn(proxy)
  }
  await switchOn(proxy)
  subject.first = (subject.first + 1) % SIGNALS.length
  return cpus
}

async function switchOn({ pid }: Proxy): Promise<void> {
  process.kill(pid, 'SIGUSR2')
  await sleep(SWITCH_MS)
}
