/** The answers under way on each connection of callers': with pipelining there may be several. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { AnswerBody } from './answer-body.ts'

export interface ConnectionAnswers {
  /** In the order of their requests. */
  readonly open: ServerResponse[]
  /** True where the end of a request can't be trusted: what comes behind it is none (RFC 9112 §11.2). */
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

/** An answer is over. */
export function closed({ open }: ConnectionAnswers, response: ServerResponse): void {
  const at = open.indexOf(response)
  if (at !== -1) open.splice(at, 1)
}

/**
 * Ties an answer to the body that it passes on: who reads slowly holds back this body alone, and who leaves ends it.
 * @param closed told when the answer is over, which it may be already
 */
export function tie(response: ServerResponse, body: AnswerBody, closed: () => void = () => {}): void {
  // A caller whose connection fails is a closed one: no error of theirs may reach the process.
  response.on('error', () => response.destroy())
  response.on('drain', () => body.resume())
  const end = (): void => {
    body.destroy()
    closed()
  }
  if (response.destroyed) end()
  else response.once('close', end)
}

/**
 * Cuts an answer that can't come to its end. One that waits behind others has no socket yet, and node would leave its caller
 * waiting for the rest for ever: the connection goes with it.
 */
export function cutOff(response: ServerResponse): void {
  if (response.socket === null) response.req.socket.destroy()
  response.destroy()
}

/** What is small enough that its bytes go out in one piece with the head, which is quicker than two. */
const ONE_PIECE = 16 * 1024

/** Ends an answer. @param last what is left to write of it */
export function endWith(response: ServerResponse, last: Buffer | undefined): void {
  if (last === undefined) response.end()
  else if (last.length > ONE_PIECE) response.end(last)
  // Only text is joined with the head; in this encoding each byte is one character, and the other way round.
  else response.end(last.toString('latin1'), 'latin1')
}

/** True if one of them has begun, or is still due for a request that came whole. */
export function isDue({ open }: ConnectionAnswers): boolean {
  return open.some((response) => !response.writableFinished && (response.headersSent || response.req.complete))
}

/** Lets the connection close behind the latest of them; what has begun stays as it is. */
export function makeLast({ open }: ConnectionAnswers): void {
  const latest = open.at(-1)
  for (const response of open) if (!response.headersSent) response.shouldKeepAlive = response !== latest
}

/** True if the head of one has said that it is the last. */
export function saidLast({ open }: ConnectionAnswers): boolean {
  return open.some((response) => response.headersSent && !response.shouldKeepAlive)
}
