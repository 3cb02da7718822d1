/** Joins small chunks of a body from Node's parser: each waiting chunk of one byte takes 250 bytes that Node does not count. */
import { IncomingMessage } from 'node:http'
import { inPieces, isSmall, type Pieces } from '../pipeline/chunk-coalescing.ts'

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
