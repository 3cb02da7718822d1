/**
 * The upstream of open streams, in a process of its own: whatever is asked of it is answered by an event stream that goes on for as
 * long as its reader stays, with an event a second. The events of all streams are spread over the second. Each says when it was sent.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { Ready } from '../processes.ts'
import { makeReader } from '../requests/framing.ts'
import { LATE, now, type Span } from './clock.ts'

/** What it tells of a span: the events that were sent in it. */
export interface Sent {
  readonly events: number
}

/** An event for each stream in so many milliseconds, and in so many slices. */
const PERIOD = 1000
const SLICES = 50

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n'
const INFO = JSON.stringify({ version: '1.75.0', mode: 'sse', agents: { default: { name: 'default' } } })
const INFO_ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${INFO.length}\r\n\r\n${INFO}`

const open = new Set<Socket>()
let span: Span = { from: Number.POSITIVE_INFINITY, to: 0 }
let events = 0

function chunk(event: string): string {
  return `${event.length.toString(16)}\r\n${event}\r\n`
}

function tick(socket: Socket): void {
  // As the event will say it, or one at the edge of a span would count here and not there.
  const at = Number(now().toFixed(3))
  if (at >= span.from && at < span.to) events += 1
  socket.write(
    chunk(`data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","t":${at.toFixed(3)},"delta":"hello world"}\n\n`),
    'latin1',
  )
}

let rest = open.values()
let due = 0
let last = now()
setInterval(() => {
  // A timer that is late makes up for it: it is an event a second, whatever else the machine does.
  const at = now()
  const passed = Math.min(at - last, PERIOD)
  last = at
  for (due += (open.size * passed) / PERIOD; due >= 1; due -= 1) {
    let next = rest.next()
    if (next.done === true) {
      rest = open.values()
      next = rest.next()
    }
    if (next.done !== true) tick(next.value)
  }
}, PERIOD / SLICES)

const server = createServer({ noDelay: true }, (socket) => {
  let answer = ''
  const read = makeReader({
    head: (text) => (answer = /^GET \S+\/info /.test(text) ? INFO_ANSWER : `${HEAD}${chunk('data: {"type":"RUN_STARTED"}\n\n')}`),
    end() {
      socket.write(answer, 'latin1')
      if (answer !== INFO_ANSWER) open.add(socket)
    },
  })
  socket.on('data', read)
  socket.on('error', () => {})
  socket.on('close', () => open.delete(socket))
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  process.send?.({ port: (server.address() as AddressInfo).port } satisfies Ready)
})
process.on('message', (order: Span) => {
  span = order
  events = 0
  setTimeout(() => process.send?.({ events } satisfies Sent), order.to - now() + LATE)
})
process.once('disconnect', () => process.exit())
