/** Measures a row: its streams are opened, then listened to for a while; and the rounds of a row are put together. */
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuOf, memoryOf } from '../figures.ts'
import type { Helper } from '../processes.ts'
import { median, type RunningRow } from '../requests/measuring.ts'
import { now, type Span } from './clock.ts'
import type { Sent } from './event-upstream.ts'
import type { MeasuredStreams } from './result.ts'
import type { Opened, OpenOrder, Received } from './stream-client.ts'

/** What is wanted. */
export interface StreamsWanted {
  readonly streams: number
  readonly seconds: number
  readonly token: string
}

/** Between what is done: a process comes to rest after it, in milliseconds. */
const REST = 1500

/** So long before a span upstream and client are told of it, in milliseconds: both are to count all of it. */
const NOTICE = 300

/**
 * Measures one round.
 * @param upstream of this row alone, as is the client: nothing is left over from the row before
 * @throws an Error if an answer is no 2xx
 */
export async function measureStreams(
  { name, proxy }: RunningRow,
  upstream: Helper,
  client: Helper,
  { streams, seconds, token }: StreamsWanted,
): Promise<MeasuredStreams> {
  await sleep(REST)
  const memoryBefore = memoryOf(proxy.pid)
  const { opened, refused } = await client.ask<Opened>({ port: proxy.port, streams, token } satisfies OpenOrder)
  if (refused !== null) throw new Error(`${name} refused a stream: ${refused}`)
  await sleep(REST)
  const from = now() + NOTICE
  const span: Span = { from, to: from + 1000 * seconds }
  const asked = Promise.all([upstream.ask<Sent>(span), client.ask<Received>(span)])
  // If one of them ends it is told below, by then perhaps long ago.
  asked.catch(() => {})
  await sleep(from - now())
  const cpuBefore = cpuOf(proxy.pid)
  await sleep(span.to - now())
  const cpuAfter = cpuOf(proxy.pid)
  const memoryAfter = memoryOf(proxy.pid)
  const [sent, { events, cut, p50, p99 }] = await asked
  const each = (before: number | null, after: number | null, of: number): number | null =>
    before === null || after === null || of === 0 ? null : (after - before) / of
  return {
    ...{ row: name, opened, cut, expected: sent.events, events, p50, p99 },
    cpu: each(cpuBefore, cpuAfter, events),
    memoryEach: each(memoryBefore, memoryAfter, opened),
  }
}

/** Puts the rounds of a row together, of which there is one at least: medians of those that have a figure, and sums of counts. */
export function medianOf(rounds: readonly MeasuredStreams[]): MeasuredStreams {
  const told = (figure: 'p50' | 'p99' | 'cpu' | 'memoryEach'): number | null => {
    const values = rounds.map((one) => one[figure]).filter((value) => value !== null)
    return values.length === 0 ? null : median(values)
  }
  const sum = (count: 'cut' | 'expected' | 'events'): number => rounds.reduce((all, one) => all + one[count], 0)
  return {
    row: rounds[0]?.row ?? '',
    opened: Math.min(...rounds.map(({ opened }) => opened)),
    ...{ cut: sum('cut'), expected: sum('expected'), events: sum('events') },
    ...{ p50: told('p50'), p99: told('p99'), cpu: told('cpu'), memoryEach: told('memoryEach') },
  }
}
