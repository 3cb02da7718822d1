/**
 * A request from Node's parser, with small chunks of its body joined. A body may wait in memory for as long as an issuer takes to
 * answer. Of waiting chunks, Node counts only the bytes, but each chunk of one byte takes about 250.
 */
import { IncomingMessage } from 'node:http'
import { inPieces, isSmall, type Pieces } from '../pipeline/chunk-coalescing.ts'

export class CallerMessage extends IncomingMessage {
  #small: Pieces | null = null
  #isDue = false

  /**
   * Called by the parser with each chunk, and with null at the end. Small chunks of one read from the connection are passed on
   * together after it.
   * @returns false where nothing more should be read for now
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
      // The parser runs the tick and promise queues after each chunk.
      setImmediate(() => {
        this.#isDue = false
        this.#small?.end()
      })
    }
    return this.readableLength < this.readableHighWaterMark
  }
}
