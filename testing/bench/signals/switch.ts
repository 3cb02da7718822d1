/**
 * Loaded into the gateway before its program: SIGUSR2 switches to the next of the signals, and writes what the process did with
 * the one before. One process serves with all of them, because two processes of the same program differ by more than what is
 * measured.
 */
import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import type { makeDecisionRecorder as MakeRecorder } from '../../../src/audit/recorder.ts'
import type { Metrics } from '../../../src/observe/metrics.ts'
import type { Tracing } from '../../../src/observe/traces.ts'
import { signalOf, SLICES_FILE, type Slice } from './slices.ts'

type Call = (...values: never[]) => unknown

let slice = 0
let requests = 0
let cpu = process.cpuUsage()
process.on('SIGUSR2', () => {
  const { user, system } = process.cpuUsage(cpu)
  appendFileSync(SLICES_FILE, `${JSON.stringify({ signal: signalOf(slice), requests, cpu: user + system } satisfies Slice)}\n`)
  slice += 1
  requests = 0
  cpu = process.cpuUsage()
})

const counts = (): boolean => signalOf(slice) !== 'none'
const traces = (): boolean => signalOf(slice) === 'traces'
const audits = (): boolean => signalOf(slice) === 'audit'

function switched<Original extends Call>(original: Original, isOn: () => boolean, whenOff: Call): Original {
  return ((...values: never[]) => (isOn() ? original(...values) : whenOff(...values))) as Original
}

function allSwitched<Calls extends object>(calls: Calls): Calls {
  const entries = Object.entries(calls) as [string, Call][]
  return Object.fromEntries(entries.map(([name, call]) => [name, switched(call, counts, () => undefined)])) as Calls
}

/** What a request does for the metrics; what is counted at a start, a reload or a scrape is not a request's. */
function switchedMetrics(metrics: Metrics): Metrics {
  const counted = allSwitched(metrics.requests)
  const took: Metrics['requests']['took'] = (part, ...values) => {
    if (part === 'request') requests += 1
    counted.took(part, ...values)
  }
  const timed: Metrics['store']['timed'] = (operation, engine, call) =>
    switched(metrics.store.timed(operation, engine, call), counts, call)
  return {
    ...metrics,
    requests: { ...counted, took },
    streams: allSwitched(metrics.streams),
    store: { ...metrics.store, timed },
  }
}

function switchedTracing(tracing: Tracing): Tracing {
  return {
    ...tracing,
    begin: switched(
      (lines, caller) => tracing.begin(lines, caller),
      traces,
      () => null,
    ),
  }
}

/** Without an audit the gateway makes another recorder, so both are made. */
function switchedRecorder(make: typeof MakeRecorder): typeof MakeRecorder {
  return (parts) => {
    const audited = make(parts)
    const plain = make({ ...parts, audit: { ...parts.audit, isOn: false } })
    return {
      take: switched(audited.take, audits, plain.take),
      takeUnreadable: switched(audited.takeUnreadable, audits, plain.takeUnreadable),
    }
  }
}

const afterwards =
  <Made>(change: (made: Made) => Made) =>
  (make: (...values: never[]) => Made) =>
  (...values: never[]): Made =>
    change(make(...values))

Object.assign(globalThis, {
  switchedMetrics: afterwards(switchedMetrics),
  switchedTracing: afterwards(switchedTracing),
  switchedRecorder,
})

const WRAPPED = [
  { file: '/dist/observe/metrics.js', made: 'makeMetrics', wrapper: 'switchedMetrics' },
  { file: '/dist/observe/open-telemetry.js', made: 'startTracing', wrapper: 'switchedTracing' },
  { file: '/dist/audit/recorder.js', made: 'makeDecisionRecorder', wrapper: 'switchedRecorder' },
] as const

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    const found = WRAPPED.find(({ file }) => url.endsWith(file))
    if (found === undefined) return loaded
    const { made, wrapper } = found
    const source = Buffer.from((loaded.source ?? '') as Uint8Array).toString()
    return {
      ...loaded,
      source: `${source};${made} = ${wrapper}(${made})`,
    }
  },
})
