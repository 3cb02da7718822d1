/**
 * Loaded into the gateway before its program: SIGUSR2 switches to the next of the signals. One process serves with all of them,
 * because two processes of the same program differ by more than what is measured.
 */
import { registerHooks } from 'node:module'
import type { Metrics } from '../../../src/observe/metrics.ts'
import type { Tracing } from '../../../src/observe/traces.ts'
import { SIGNALS } from './result.ts'

type Call = (...values: never[]) => unknown

let at = 0
process.on('SIGUSR2', () => (at = (at + 1) % SIGNALS.length))

const counts = (): boolean => SIGNALS[at] !== 'none'
const traces = (): boolean => SIGNALS[at] === 'traces'

function switched<Original extends Call>(original: Original, isOn: () => boolean, whenOff: Call): Original {
  return ((...values: never[]) => (isOn() ? original(...values) : whenOff(...values))) as Original
}

function allSwitched<Calls extends object>(calls: Calls): Calls {
  const entries = Object.entries(calls) as [string, Call][]
  return Object.fromEntries(entries.map(([name, call]) => [name, switched(call, counts, () => undefined)])) as Calls
}

/** What a request does for the metrics; what is counted at a start, a reload or a scrape is not a request's. */
function switchedMetrics(metrics: Metrics): Metrics {
  const timed: Metrics['store']['timed'] = (operation, engine, call) =>
    switched(metrics.store.timed(operation, engine, call), counts, call)
  return {
    ...metrics,
    requests: allSwitched(metrics.requests),
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

Object.assign(globalThis, { switchedMetrics, switchedTracing })

const WRAPPED = [
  { file: '/dist/observe/metrics.js', made: 'makeMetrics', wrapper: 'switchedMetrics' },
  { file: '/dist/observe/open-telemetry.js', made: 'startTracing', wrapper: 'switchedTracing' },
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
      source: `${source};{ const original = ${made}; ${made} = (...values) => ${wrapper}(original(...values)) }`,
    }
  },
})
