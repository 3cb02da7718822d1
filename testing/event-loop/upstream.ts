/** An upstream that takes whatever comes and keeps none of it, and lists long pages. */
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

const MIB = 2 ** 20

/** A page of so many threads, with so many bytes in each. */
function page(threads: number, bytes: number, byte = 'n'): string {
  const items = Array.from({ length: threads }, (_, at) => ({ id: `t${at}`, name: byte.repeat(bytes), n: at }))
  return JSON.stringify({ threads: items, nextCursor: null })
}

const PAGES: Readonly<Record<string, () => string>> = {
  short: () => page(20, 10),
  many: () => page(100_000, 10),
  long: () => page(900, 30 * 1024),
  // As long as callers can name their threads.
  named: () => page(30, MIB - 100),
  // What looks like ends of threads.
  braced: () => page(30, MIB - 100, '}'),
}

/** Of the messages that callers can make a thread have. */
const HISTORIES: Readonly<Record<string, (at: number) => object>> = {
  plain: (at) => ({ id: `m${at}`, role: 'assistant', content: '' }),
  calling: (at) => ({ id: `m${at}`, role: 'assistant', content: '', toolCalls: [{ id: `c${at}`, name: 'x', args: '{}' }] }),
}

/** As long as the gateway reads a history. */
function history(name: string): string {
  const messages: object[] = []
  for (let length = 0; length < 31 * MIB; length += JSON.stringify(messages.at(-1)).length + 1) {
    messages.push(HISTORIES[name]?.(messages.length) ?? {})
  }
  return JSON.stringify({ messages })
}

/** An upstream. */
export interface Sink {
  readonly url: string
  /** Which page it lists from now on. */
  list(name: string): void
  /** Which messages its threads have from now on. */
  remember(name: string): void
  close(): void
}

/** Starts one. */
export async function startSink(): Promise<Sink> {
  let listed = PAGES['short']?.() ?? ''
  let remembered = ''
  const server: Server = createServer((message, response) => {
    message.resume()
    message.on('end', () => {
      const isList = message.url?.includes('/threads?') === true || message.url?.endsWith('/threads') === true
      const isHistory = message.url?.endsWith('/messages') === true
      response.writeHead(200, { 'content-type': isList || isHistory ? 'application/json' : 'text/event-stream' })
      response.end(isHistory ? remembered : isList ? listed : 'data: {"type":"RUN_STARTED"}\n\n')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    list: (name) => (listed = PAGES[name]?.() ?? listed),
    remember: (name) => (remembered = history(name)),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
