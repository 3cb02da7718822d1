/** Reads request bodies within two bounds: one for each body, and one for all bodies in memory at once. Keeps account of that memory. */
import { IncomingMessage } from 'node:http'
import { Transform, type Readable } from 'node:stream'
import { isJsonType, multipartType, type HeaderLines } from '../../core/wire/headers.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import { BodyTooLarge } from '../upstream/upstream.ts'
import type { Timing } from './stages.ts'

export interface ArrivingBody {
  readonly message: IncomingMessage
  readonly lines: HeaderLines
  readonly caller: string
  /** Asks the caller for the body; null where it comes unasked. */
  readonly onWanted: (() => void) | null
  readonly timing: Pick<Timing, 'waited'>
}

/** By the headers. Refuses with 415. */
export function bodyForm(
  lines: HeaderLines,
): { readonly form: 'none' } | { readonly form: 'json' } | { readonly form: 'multipart'; readonly type: string } | Refusal {
  // RFC 9112 §6.3.
  if (!lines.has('transfer-encoding') && !(Number(lines.get('content-length')?.[0] ?? 0) > 0)) return { form: 'none' }
  const encoding = lines.get('content-encoding')?.[0]
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') return refuse('content-encoding-unsupported')
  const type = lines.get('content-type')?.[0] ?? ''
  if (isJsonType(type)) return { form: 'json' }
  const multipart = multipartType(type)
  return multipart === null ? refuse('media-type-unsupported') : { form: 'multipart', type: multipart }
}

export interface HeldBody {
  readonly bytes: number
  /** Bytes of the budget. The function that gets the body gives them back. */
  readonly taken: number
  readonly budget: BodyBudget
}

/** 413 beyond `most` bytes, 503 beyond `budget`. Where `take` refuses a piece, the rest is not awaited. */
export function holdBody(
  { message, lines, onWanted, timing }: ArrivingBody,
  most: number,
  budget: BodyBudget,
  take: Take,
): Promise<HeldBody | Refusal> {
  if (Number(lines.get('content-length')?.[0] ?? 0) > most) return Promise.resolve(refuse('body-too-large'))
  onWanted?.()
  const { promise, resolve } = Promise.withResolvers<HeldBody | Refusal>()
  // A small piece would keep the whole buffer in memory into which the socket was read.
  const pieces = inPieces((piece) => take(2 * piece.length < piece.buffer.byteLength ? copied(piece) : piece))
  let held = 0
  let waitsSince = performance.now()
  const done = (refusal: Refusal | null = pieces.end()): void => {
    timing.waited += performance.now() - waitsSince
    message.off('data', onData).off('end', done).off('error', onBroken).off('close', onBroken)
    if (refusal !== null) budget.give(held)
    resolve(refusal ?? { bytes: held, taken: held, budget })
  }
  const onData = (chunk: Buffer): void => {
    timing.waited += performance.now() - waitsSince
    let fault: Refusal | null
    if (held + chunk.length > most) fault = refuse('body-too-large')
    else if (!budget.take(chunk.length)) fault = refuse('bodies-budget-exhausted')
    else {
      held += chunk.length
      fault = pieces.take(chunk)
    }
    waitsSince = performance.now()
    if (fault === null) return
    // The code that answers discards the rest of the body.
    message.pause()
    done(fault)
  }
  const onBroken = (): void => done(refuse('body-aborted'))
  message.on('data', onData).on('end', done).on('error', onBroken).on('close', onBroken)
  // A request that broke off before has no event left.
  if (message.destroyed && !message.readableEnded) onBroken()
  return promise
}

/** Fails with BodyTooLarge beyond its bound in bytes. */
export function boundedBody(message: IncomingMessage, most: number): Readable {
  let bytes = 0
  const bounded = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      if (bytes > most) done(new BodyTooLarge())
      else done(null, chunk)
    },
  })
  // A failed upstream request no longer listens. Without a listener, an error would end the process.
  bounded.on('error', () => {})
  message.on('error', (error) => bounded.destroy(error))
  message.on('close', () => {
    if (!message.readableEnded) bounded.destroy(new Error('the caller left'))
  })
  // An upstream that answered early takes no more. The rest is read and discarded, or the connection would stall.
  bounded.on('close', () => {
    message.unpipe(bounded)
    message.resume()
  })
  return message.pipe(bounded)
}

/** Owns the bytes from then on. */
export type Take = (bytes: Buffer) => Refusal | null

export interface Pieces {
  readonly take: Take
  readonly end: () => Refusal | null
}

const SMALL = 1024

/** The small pieces of a body that pass on as they come: hostile ones are refused before the rest has come. */
const AS_THEY_COME = 64

/** Bytes for joining small pieces: a sender who stops can make the gateway hold this much beyond the counted bytes. */
const ROOM = 4096

/**
 * Joins small pieces of a body, down to one byte a chunk (RFC 9112 §7.1): each kept piece costs some 250 bytes more.
 * `take` gets, after the first small pieces, pieces of at least 1 KiB, and one smaller piece between any two of these.
 */
export function inPieces(take: Take, asTheyCome = AS_THEY_COME): Pieces {
  let left = asTheyCome
  let room: Buffer | null = null
  let filled = 0

  const handOn = (): Refusal | null => {
    if (room === null || filled === 0) return null
    const together = room.subarray(0, filled)
    filled = 0
    // A few bytes would keep the whole buffer in memory.
    if (2 * together.length < ROOM) return take(copied(together))
    room = null
    return take(together)
  }

  return {
    take(bytes) {
      if (bytes.length >= SMALL) return handOn() ?? take(bytes)
      if (left > 0) {
        left -= 1
        return take(bytes)
      }
      room ??= Buffer.allocUnsafeSlow(ROOM)
      filled += bytes.copy(room, filled)
      return filled > ROOM - SMALL ? handOn() : null
    },
    end: handOn,
  }
}

/** A copy with a buffer of its own: Node puts small copies into a buffer of 64 KiB, which each of them would keep in memory. */
function copied(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(own)
  return own
}

/** Joins small chunks of a body from Node's parser: each waiting chunk of one byte takes 250 bytes that Node does not count. */
export class CallerMessage extends IncomingMessage {
  #asTheyCome = AS_THEY_COME
  #small: Pieces | null = null
  #isDue = false

  /** Passes on small chunks of one read together, after it. @returns false where nothing more should be read for now */
  override push(chunk: Buffer | null): boolean {
    if (chunk === null) {
      this.#small?.end()
      return super.push(null)
    }
    if (this.#small === null && (chunk.length >= SMALL || this.#asTheyCome > 0)) {
      if (chunk.length < SMALL) this.#asTheyCome -= 1
      return super.push(chunk)
    }
    this.#small ??= inPieces((bytes) => {
      super.push(bytes)
      return null
    }, 0)
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

/** In bytes. */
export interface BodyBudget {
  readonly most: number
  take(bytes: number): boolean
  give(bytes: number): void
}

/** A budget of which no caller may take all. */
export interface SharedBudget extends BodyBudget {
  of(caller: string): BodyBudget
  /** Bytes that are taken now. */
  used(): number
}

/** @param share bytes that a caller may hold. A caller who holds nothing may take more: a large body is taken whole. */
export function makeBudget(most: number, share = most): SharedBudget {
  let left = most
  const taken = new Map<string, number>()
  return {
    most,
    take(bytes) {
      if (bytes > left) return false
      left -= bytes
      return true
    },
    give(bytes) {
      left += bytes
    },
    used: () => most - left,
    of: (caller) => ({
      most: Math.min(most, share),
      take(bytes) {
        const theirs = taken.get(caller) ?? 0
        if (bytes > left || (theirs > 0 && theirs + bytes > share)) return false
        left -= bytes
        taken.set(caller, theirs + bytes)
        return true
      },
      give(bytes) {
        left += bytes
        const theirs = (taken.get(caller) ?? 0) - bytes
        if (theirs > 0) taken.set(caller, theirs)
        else taken.delete(caller)
      },
    }),
  }
}

/** Memory per byte of a body that is read and written. Up to 6.3 were measured, for text with a character beyond Latin-1. */
const PER_BYTE = 6

/** For each value in a body: `{"999":1}` takes the most. */
const PER_VALUE = 200

/** In bytes. */
export function readingCost(bytes: number, values: number): number {
  return bytes * PER_BYTE + values * PER_VALUE
}

export function largestReadable(most: number): number {
  return Math.floor(most / PER_BYTE)
}

/** In bytes. */
export interface BodyMemory {
  /** For what has arrived of all bodies. */
  readonly held: number
  readonly reading: number
  readonly answers: number
}

/** A quarter of the heap is for everything else, and for bodies that wait. `heap` is V8's old space in bytes. */
export function bodyMemory(heap: number): BodyMemory {
  return { held: heap / 8, reading: (heap * 3) / 8, answers: heap / 4 }
}

export function bodyMemoryWarning(heap: number, limits: { readonly body: number; readonly runBody: number }): string | null {
  const largest = largestReadable(bodyMemory(heap).reading)
  if (Math.max(limits.body, limits.runBody) <= largest) return null
  const mebibytes = (bytes: number): string => `${Math.floor(bytes / 2 ** 20)} MiB`
  return `bodies of more than ${mebibytes(largest)} are refused with 413: Node has ${mebibytes(heap)} here for all that lives. Give the container more memory, or lower limits.runBody`
}
