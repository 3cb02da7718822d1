/**
 * Sends a load, in a process of its own: so many connections, each of which sends its next request when its answer is there.
 * Everything that could be made before is made before. Its parent tells it what to send and when.
 */
import { connect, type Socket } from 'node:net'
import type { Ready } from '../processes.ts'
import { makeReader } from './framing.ts'

/** What to send from now on. */
export interface LoadOrder {
  readonly requests: readonly Uint8Array[]
  /** Text of each of them whose last twelve digits are a number that was not sent before. */
  readonly numbered?: string
}

/** Where to send it, and for how long. */
export interface RoundOrder {
  readonly port: number
  readonly connections: number
  readonly milliseconds: number
}

/** How a round went. Times are in microseconds. */
export interface Round {
  readonly count: number
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  /** Answers other than 2xx, and connections that broke. */
  readonly bad: number
  /** What the first of them was. */
  readonly firstBad: string | null
}

/** How long the last answers may take, in milliseconds. */
const PATIENCE = 30_000

// One for all connections: what comes is read before the next read begins.
const buffer = Buffer.allocUnsafeSlow(256 * 1024)
let requests: readonly Uint8Array[] = []
let next = 0
/** Where the number of each request is; empty where they have none. */
let places: readonly number[] = []
let number = 0

const DIGITS = 12

function nextRequest(): Uint8Array {
  const at = next
  next = (next + 1) % requests.length
  const request = requests[at]!
  const place = places[at]
  if (place === undefined) return request
  // Its own copy: the one before may still wait in its socket.
  const own = Buffer.from(request)
  own.write(String(number++).padStart(DIGITS, '0'), place, 'latin1')
  return own
}

interface Tally {
  /** In milliseconds. */
  readonly times: number[]
  bad: number
  firstBad: string | null
}

async function play({ port, connections, milliseconds }: RoundOrder): Promise<Round> {
  const tally: Tally = { times: [], bad: 0, firstBad: null }
  const began = performance.now()
  await Promise.all(Array.from({ length: connections }, () => playOn(port, began + milliseconds, tally)))
  const seconds = (performance.now() - began) / 1000
  const { times, bad, firstBad } = tally
  const sorted = Float64Array.from(times).sort()
  const quantile = (part: number): number => 1000 * (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0)
  return { count: times.length, perSecond: times.length / seconds, p50: quantile(0.5), p99: quantile(0.99), bad, firstBad }
}

/** One connection. It asks until that moment, waits for its last answer, and leaves. */
function playOn(port: number, until: number, tally: Tally): Promise<void> {
  const fail = (what: string): void => {
    tally.bad += 1
    tally.firstBad ??= what
  }
  return new Promise((resolve) => {
    let sent = 0
    let isOver = false
    const send = (): void => {
      const request = nextRequest()
      sent = performance.now()
      socket.write(request)
    }
    const read = makeReader({
      head(text) {
        // HTTP/1.1 200
        if (text.charCodeAt(9) !== 0x32) fail(text.slice(0, text.indexOf('\r\n')))
      },
      end() {
        const now = performance.now()
        tally.times.push(now - sent)
        if (now < until) send()
        else {
          isOver = true
          socket.destroy()
        }
      },
    })
    const onread = { buffer, callback: (bytes: number) => (read(buffer.subarray(0, bytes)), true) }
    const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true, onread })
    const impatience = setTimeout(() => socket.destroy(), until - performance.now() + PATIENCE)
    socket.once('connect', send)
    socket.on('error', () => {})
    socket.once('close', () => {
      clearTimeout(impatience)
      if (!isOver) fail('the connection was closed, or no answer came')
      resolve()
    })
  })
}

process.on('message', (order: LoadOrder | RoundOrder) => {
  if ('requests' in order) {
    const { numbered } = order
    requests = order.requests
    next = 0
    places = numbered === undefined ? [] : requests.map((one) => Buffer.from(one).indexOf(numbered) + numbered.length - DIGITS)
    process.send?.({})
  } else void play(order).then((round) => process.send?.(round))
})
process.once('disconnect', () => process.exit())
process.send?.({ port: 0 } satisfies Ready)
