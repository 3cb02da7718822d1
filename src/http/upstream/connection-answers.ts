/** Tracks the answers under way on each caller's connection: with pipelining there may be several. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { AnswerBody } from './answer-body.ts'

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

/** A slow reader back-pressures only this body; a disconnect aborts it. `closed` may be called at once. */
export function tie(response: ServerResponse, body: AnswerBody, closed: () => void = () => {}): void {
  // A connection that fails counts as closed: no error of a caller may reach the process.
  response.on('error', () => response.destroy())
  response.on('drain', () => body.resume())
  const end = (): void => {
    body.destroy()
    closed()
  }
  if (response.destroyed) end()
  else response.once('close', end)
}

/** An answer that waits behind others has no socket yet: Node would leave its caller waiting, so this closes the connection. */
export function cutOff(response: ServerResponse): void {
  if (response.socket === null) response.req.socket.destroy()
  response.destroy()
}

/** Up to so many bytes go out in one piece with the head, which is quicker than two. */
const ONE_PIECE = 16 * 1024

export function endWith(response: ServerResponse, last: Buffer | undefined): void {
  if (last === undefined) response.end()
  else if (last.length > ONE_PIECE) response.end(last)
  // Node joins only text with the head; in this encoding each byte is one character, and each character one byte.
  else response.end(last.toString('latin1'), 'latin1')
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
