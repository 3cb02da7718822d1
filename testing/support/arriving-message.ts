/** A request of node:http whose body comes in given pieces, without a socket: for code that reads only the body. */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'

export function arrivingMessage(pieces: readonly Uint8Array[]): IncomingMessage {
  const left = [...pieces]
  const message = new IncomingMessage(new Socket())
  // A piece a read: what is pushed at once could arrive joined.
  message._read = () => {
    const piece = left.shift()
    if (piece === undefined) message.complete = true
    message.push(piece ?? null)
  }
  return message
}
