/**
 * An upstream that writes down who reached it on which thread, and when. A run says itself how it is to be answered, and a
 * mark tells which request of which client it is.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json as readJson } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Moments } from './moments.ts'

/** What becomes of a run: it is started, or certainly not, or nobody knows, because the connection breaks without an answer. */
export type Fate = 'started' | 'refused' | 'broken'

/** What the first message of a run says. */
export interface Wish {
  readonly fate: Fate
  /** After so many milliseconds. */
  readonly after: number
}

/** Header of the mark; the gateway has to be configured to pass it. */
export const MARK = 'x-mark'
/** Header of the user id that the gateway found. */
export const USER = 'x-user-id'

/** A request that arrived. */
export interface Arrival {
  readonly mark: string
  readonly user: string
  /** Of a run; null for everything else. */
  readonly fate: Fate | null
  readonly at: number
  /** When its answer was sent, or its connection broken; null while neither was. */
  ended: number | null
}

/** The upstream. */
export interface Ledger {
  readonly url: string
  /** What arrived on a thread, in order. */
  readonly arrivals: (thread: string) => readonly Arrival[]
  /** Forgets what it knows of all threads. */
  readonly forget: () => void
  readonly close: () => Promise<void>
}

/** What a runtime says of itself. */
const INFO = { version: '1.75.0', agents: { default: { name: 'default' } }, mode: 'sse' }

const RUN = /\/agent\/[^/]+\/run$/
const THREAD = /\/threads\/([^/?]+)/

/** Starts it. */
export async function startLedger(moments: Moments): Promise<Ledger> {
  let threads = new Map<string, Arrival[]>()
  const enter = (thread: string, message: IncomingMessage, fate: Fate | null): Arrival => {
    const { [MARK]: mark = '', [USER]: user = '' } = message.headers as Record<string, string>
    const arrival: Arrival = { mark, user, fate, at: moments(), ended: null }
    const before = threads.get(thread)
    if (before === undefined) threads.set(thread, [arrival])
    else before.push(arrival)
    return arrival
  }
  const answer = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { url = '' } = message
    const body = message.method === 'POST' ? ((await readJson(message)) as RunBody) : null
    if (body !== null && RUN.test(url)) {
      const wish = JSON.parse(body.messages[0]?.content ?? '') as Wish
      const arrival = enter(body.threadId, message, wish.fate)
      if (wish.after > 0) await sleep(wish.after)
      arrival.ended = moments()
      if (wish.fate === 'broken') response.destroy()
      else if (wish.fate === 'refused') send(response, 400, { error: 'not like this' })
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {}\n\n')
      return
    }
    const thread = THREAD.exec(url)?.[1]
    if (thread !== undefined) enter(thread, message, null).ended = moments()
    send(response, 200, url.endsWith('/info') ? INFO : { messages: [] })
  }
  const server = createServer((message, response) => {
    // Of a gateway that was killed only a part may come.
    answer(message, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals: (thread) => threads.get(thread) ?? [],
    forget: () => void (threads = new Map()),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface RunBody {
  readonly threadId: string
  readonly messages: readonly { readonly content: string }[]
}

function send(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
