/**
 * A request as Node's parser gives it, with small chunks of its body put together. A body waits in memory until somebody reads
 * it, which may be as long as an issuer takes to say who its sender is; and of what waits Node counts the bytes, and not that
 * each chunk of one byte takes some 250.
 */
import { IncomingMessage } from 'node:http'
import { inPieces, isSmall, type Pieces } from '../pipeline/small-pieces.ts'

/** The class of requests for Node's server (its option `IncomingMessage`). */
export class CallerMessage extends IncomingMessage {
  #small: Pieces | null = null
  #isDue = false

  /**
   * Called by the parser with each chunk, and with null at the end. Small chunks that come in one reading from the connection
   * are handed on together behind it.
   * @returns false where nothing more is to be read for now
   */
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
      // The parser lets the queues of ticks and promises run behind each chunk.
      setImmediate(() => {
        this.#isDue = false
        this.#small?.end()
      })
    }
    return this.readableLength < this.readableHighWaterMark
  }
}
