/** Requests of node:http without a connection, for code that reads only the body. */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'

/** One whose body comes in given pieces. */
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

/** The caller's side of a message. */
export interface Writing {
  write(text: string): void
  end(text: string): void
  destroy(error?: Error): void
}

/** One whose body the test writes. */
export function writtenMessage(): { readonly source: Writing; readonly message: IncomingMessage } {
  const message = new IncomingMessage(new Socket())
  message._read = () => {}
  const source: Writing = {
    write: (text) => void message.push(text),
    end(text) {
      message.push(text)
      message.complete = true
      message.push(null)
    },
    destroy: (error) => void message.destroy(error),
  }
  return { source, message }
}
