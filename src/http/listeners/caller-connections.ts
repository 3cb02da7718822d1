/** The connections of callers: the answers under way on each, of which pipelining makes several, and how bodies arrive on it. */
import { IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { inPieces, isSmall, type Pieces } from '../pipeline/request-body.ts'

export interface ConnectionAnswers {
  /** In the order of their requests. */
  readonly open: ServerResponse[]
  /** True where the end of a request cannot be trusted: what follows is not a request (RFC 9112 §11.2). */
  closing: boolean
}

export interface CallerConnections {
  of(socket: Socket): ConnectionAnswers
  all(): Iterable<ConnectionAnswers>
}

export function makeCallerConnections(): CallerConnections {
  const known = new WeakMap<Socket, ConnectionAnswers>()
  const all = new Set<ConnectionAnswers>()
  return {
    of(socket) {
      let connection = known.get(socket)
      if (connection === undefined) {
        const made: ConnectionAnswers = { open: [], closing: false }
        connection = made
        known.set(socket, made)
        all.add(made)
        socket.once('close', () => all.delete(made))
      }
      return connection
    },
    all: () => all,
  }
}

export function closed({ open }: ConnectionAnswers, response: ServerResponse): void {
  const at = open.indexOf(response)
  if (at !== -1) open.splice(at, 1)
}

export function isDue({ open }: ConnectionAnswers): boolean {
  return open.some((response) => !response.writableFinished && (response.headersSent || response.req.complete))
}

/** Makes the connection close after the latest answer; answers that have begun stay as they are. */
export function makeLast({ open }: ConnectionAnswers): void {
  const latest = open.at(-1)
  for (const response of open) if (!response.headersSent) response.shouldKeepAlive = response !== latest
}

export function saidLast({ open }: ConnectionAnswers): boolean {
  return open.some((response) => response.headersSent && !response.shouldKeepAlive)
}

/** Joins small chunks of a body from Node's parser: each waiting chunk of one byte takes 250 bytes that Node does not count. */
export class CallerMessage extends IncomingMessage {
  #small: Pieces | null = null
  #isDue = false

  /** Passes on small chunks of one read together, after it. @returns false where nothing more should be read for now */
  override push(chunk: Buffer | null): boolean {
    if (chunk === null) {
      this.#small?.end()
      return super.push(null)
    }
    if (this.#small === null && !isSmall(chunk)) return super.push(chunk)
    this.#small ??= inPieces((bytes) => {
      super.push(bytes)
      return null
    })
    this.#small.take(chunk)
    if (!this.#isDue) {
      this.#isDue = true
      // The parser runs the tick and promise queues after each chunk.
      setImmediate(() => {
        this.#isDue = false
        this.#small?.end()
      })
    }
    return this.readableLength < this.readableHighWaterMark
  }
}
