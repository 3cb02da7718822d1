/** Opens streams and reads their events, in a process of its own. */
import { connect, type Socket } from 'node:net'
import type { Ready } from '../processes.ts'
import { makeReader } from '../requests/framing.ts'
import { run } from '../requests/loads.ts'
import { LATE, now, type Span } from './clock.ts'

/** Opens so many: runs, each on a thread of its own. */
export interface OpenOrder {
  readonly port: number
  readonly streams: number
  readonly token: string
}

/** How many of them are open. */
export interface Opened {
  readonly opened: number
  /** The first line of the first answer that was no 2xx. */
  readonly refused: string | null
}

/** What was read of what was sent in a span. Latencies are in milliseconds, and null where nothing was read. */
export interface Received {
  readonly events: number
  /** Streams that ended, though nobody wanted that, since the first of them was opened. */
  readonly cut: number
  readonly p50: number | null
  readonly p99: number | null
}

/** Of a run, in bytes. */
const BODY = 16_000

/** So many are being opened at the same time. */
const WIDTH = 100

/** How long a stream may take to open, in milliseconds. */
const PATIENCE = 30_000

/** More than an event has. What is left of a read may be the beginning of one. */
const MOST_OF_AN_EVENT = 200

const buffer = Buffer.allocUnsafeSlow(256 * 1024)
const latencies: number[] = []
let span: Span = { from: Number.POSITIVE_INFINITY, to: 0 }
let cut = 0
let refused: string | null = null

function hear(text: string): string {
  const at = now()
  let read = 0
  for (const match of text.matchAll(/"t":([\d.]+),/g)) {
    const sent = Number(match[1])
    if (sent >= span.from && sent < span.to) latencies.push(at - sent)
    read = match.index + match[0].length
  }
  return text.slice(Math.max(read, text.length - MOST_OF_AN_EVENT))
}

/** @returns true once the first event is there, false if none comes */
function openOne(port: number, request: Buffer): Promise<boolean> {
  return new Promise((resolve) => {
    const impatience = setTimeout(() => socket.destroy(), PATIENCE)
    let isOpen = false
    let held = ''
    const read = makeReader({
      head(text) {
        if (text.charCodeAt(9) !== 0x32) refused ??= text.slice(0, text.indexOf('\r\n'))
      },
      body(bytes) {
        held = hear(held + bytes.toString('latin1'))
        if (isOpen) return
        isOpen = true
        clearTimeout(impatience)
        resolve(true)
      },
      end: () => socket.destroy(),
    })
    const onread = { buffer, callback: (bytes: number) => (read(buffer.subarray(0, bytes)), true) }
    const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true, onread })
    socket.once('connect', () => socket.write(request))
    socket.on('error', () => {})
    socket.once('close', () => {
      clearTimeout(impatience)
      if (isOpen) cut += 1
      resolve(false)
    })
  })
}

async function open({ port, streams, token }: OpenOrder): Promise<Opened> {
  let next = 0
  let opened = 0
  const openSome = async (): Promise<void> => {
    while (next < streams && refused === null) {
      const request = run(`stream-${String((next += 1))}`, token, BODY)
      if (await openOne(port, request)) opened += 1
    }
  }
  await Promise.all(Array.from({ length: Math.min(WIDTH, streams) }, openSome))
  return { opened, refused }
}

function received(): Received {
  const sorted = Float64Array.from(latencies).sort()
  const quantile = (part: number): number | null => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? null
  return { events: sorted.length, cut, p50: quantile(0.5), p99: quantile(0.99) }
}

process.on('message', (order: OpenOrder | Span) => {
  if ('port' in order) void open(order).then((opened) => process.send?.(opened))
  else {
    span = order
    latencies.length = 0
    setTimeout(() => process.send?.(received()), order.to - now() + LATE)
  }
})
// Its sockets end with it.
process.once('disconnect', () => process.exit())
process.send?.({ port: 0 } satisfies Ready)
