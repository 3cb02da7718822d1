/** Hands the body of an upstream answer to one reader as it comes, and holds it back while the reader takes no more. */
import type { Readable } from 'node:stream'

export interface BodyReader {
  /** @returns false to get nothing more until `resume` */
  data(chunk: Buffer): boolean
  end(last?: Buffer): void
  broken(error: Error): void
}

/** Nothing of a body is lost before there is a reader, and the bytes held meanwhile are bounded. */
export interface AnswerBody {
  /** Bytes; undefined unless the whole body came before there is a reader. */
  readonly whole: number | undefined
  read(reader: BodyReader): void
  resume(): void
  destroy(): void
  /** Called with `whole` once the reader has got all of it, or else with `broken-off`. A later destroy() calls it again. */
  onOver: ((how: 'whole' | 'broken-off') => void) | null
}

export interface BodySource {
  pause(): void
  resume(): void
  abort(reason: Error): void
}

/** Bytes that are held for a reader who is not there yet: an answer that is no larger is written whole. */
const MOST_HELD = 64 * 1024

export class ArrivingBody implements AnswerBody {
  whole: number | undefined = undefined
  onOver: ((how: 'whole' | 'broken-off') => void) | null = null
  readonly #source: BodySource
  #reader: BodyReader | null = null
  #held: Buffer[] = []
  #heldBytes = 0
  #full = false
  #paused = false
  #over: 'no' | 'ended' | 'broken' | 'destroyed' = 'no'
  #error: Error | null = null

  constructor(source: BodySource) {
    this.#source = source
  }

  push(chunk: Buffer): void {
    if (this.#over !== 'no') return
    if (this.#reader !== null && this.#held.length === 0 && !this.#full) {
      this.#full = !this.#reader.data(chunk)
      if (this.#full) this.#pause()
      return
    }
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
    if (this.#full || this.#heldBytes > MOST_HELD) this.#pause()
  }

  finish(): void {
    if (this.#over !== 'no') return
    this.#over = 'ended'
    if (this.#reader === null) this.whole = this.#heldBytes
    else if (this.#held.length === 0) {
      this.onOver?.('whole')
      this.#reader.end()
    }
  }

  fail(error: Error): void {
    if (this.#over !== 'no') return
    this.#over = 'broken'
    this.#error = error
    this.#held = []
    this.onOver?.('broken-off')
    this.#reader?.broken(error)
  }

  read(reader: BodyReader): void {
    if (this.#over === 'destroyed') return
    this.#reader = reader
    this.whole = undefined
    if (this.#error === null) this.#handOn(reader)
    else {
      this.onOver?.('broken-off')
      reader.broken(this.#error)
    }
  }

  resume(): void {
    if (this.#reader === null || !this.#full) return
    this.#full = false
    this.#handOn(this.#reader)
  }

  destroy(): void {
    const wasUnderWay = this.#over === 'no'
    this.#over = 'destroyed'
    this.#reader = null
    this.whole = undefined
    this.#held = []
    this.onOver?.('broken-off')
    if (wasUnderWay) this.#source.abort(new Error('the answer is not wanted'))
  }

  #handOn(reader: BodyReader): void {
    let last: Buffer | undefined
    while (this.#held.length > 0 && !this.#full) {
      const chunk = this.#held.shift() as Buffer
      this.#heldBytes -= chunk.length
      if (this.#held.length === 0 && this.#over === 'ended') last = chunk
      else this.#full = !reader.data(chunk)
    }
    if (this.#full) this.#pause()
    else if (this.#over === 'ended') {
      this.onOver?.('whole')
      reader.end(last)
    } else if (this.#paused) {
      this.#paused = false
      this.#source.resume()
    }
  }

  #pause(): void {
    if (this.#paused || this.#over !== 'no') return
    this.#paused = true
    this.#source.pause()
  }
}

export function wholeBody(bytes: Buffer): AnswerBody {
  const body = new ArrivingBody({ pause() {}, resume() {}, abort() {} })
  pushInPieces(body, bytes)
  body.finish()
  return body
}

/** A slow reader takes one piece after the other, so the gateway sees that it takes something. */
function pushInPieces(body: ArrivingBody, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; at += MOST_HELD) body.push(bytes.subarray(at, at + MOST_HELD))
}

export function streamedBody(stream: Readable): AnswerBody {
  const body = new ArrivingBody({
    pause: () => stream.pause(),
    resume: () => stream.resume(),
    abort: () => stream.destroy(),
  })
  stream.on('data', (chunk: Buffer) => pushInPieces(body, chunk))
  stream.once('end', () => body.finish())
  stream.on('error', (error) => body.fail(error))
  // A stream that is destroyed without an error has broken off, too.
  stream.once('close', () => body.fail(new Error('the body ended early')))
  return body
}

/** `most` is in bytes. `hasRoom` is asked each time for all the bytes that have come: with false, they are too many. */
export function collect(
  body: AnswerBody,
  most: number,
  hasRoom: (bytes: number) => boolean = () => true,
): Promise<Buffer | 'too-large' | 'broke-off'> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let bytes = 0
    body.read({
      data(chunk) {
        bytes += chunk.length
        if (bytes > most || !hasRoom(bytes)) {
          body.destroy()
          resolve('too-large')
          return false
        }
        chunks.push(chunk)
        return true
      },
      end(last) {
        bytes += last?.length ?? 0
        if (bytes > most || !hasRoom(bytes)) resolve('too-large')
        else resolve(Buffer.concat(last === undefined ? chunks : [...chunks, last]))
      },
      broken: () => resolve('broke-off'),
    })
  })
}
