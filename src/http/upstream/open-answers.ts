/** Passes answers on as they come, ends them when their access ends, and cuts them when their reader takes nothing. */
import type { ServerResponse } from 'node:http'
import type { Credential } from '../../core/decide/credential.ts'
import type { Permit } from '../../core/decide/decide.ts'
import { binaryRunError, frameBoundary } from '../../core/wire/binary-events.ts'
import { eventBoundary } from '../../core/wire/event-boundary.ts'
import type { StreamForm } from '../../core/wire/headers.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import type { StreamMetrics } from '../../observe/metrics.ts'
import type { AnswerBody } from './answer-body.ts'
import { cutOff, endWith, tie } from './connection-answers.ts'

export interface AnswerOwner {
  readonly userId: string
  readonly credential: Credential | null
  /** What allowed the answer; without a permit, the answer is not checked again. */
  readonly permit?: Permit
  readonly tellsOf?: readonly string[]
}

export type AnswerForm = StreamForm | 'plain'

export interface Caller {
  readonly response: ServerResponse
  /** @param length the bytes that follow, where that is known: nothing else may follow then */
  readonly head: (length?: number) => void
  /** Takes a place among the caller's open streams; false if none is left. Null where a place was taken already. */
  readonly takePlace: (() => Promise<boolean>) | null
  readonly onEnded: (why: EndReason) => void
}

export type EndReason = 'not-allowed' | 'credential-expired' | 'credential-invalid' | 'shutting-down' | 'rate-limited' | 'stalled'

export interface OpenAnswers {
  /** Applies `rules` whatever is configured meanwhile. @returns true if some of the body was sent, and the head with it */
  pass(body: AnswerBody, caller: Caller, form: AnswerForm, owner: AnswerOwner, rules: AnswerRules): boolean
  /** Null if the answer may begin; its credential may have been revoked, or end streams by now. */
  refusal(owner: AnswerOwner, rules: Pick<AnswerRules, 'tokenExpiry' | 'grace'>): Refusal | null
  count(): number
  endAll(message: string, code: 'shutting-down'): void
  endRevoked(): void
  owners(): readonly AnswerOwner[]
  /** Compares owners as objects. */
  endOf(owners: ReadonlySet<AnswerOwner>): void
}

export interface AnswerRules {
  /** Milliseconds of silence before a keep-alive comment; 0 for none. */
  readonly keepAlive: number
  readonly tokenExpiry: 'close' | 'grace' | 'ignore'
  /** Milliseconds that an answer may continue with `grace`. */
  readonly grace: number
  /** Milliseconds that a reader may take nothing; 0 for no limit. */
  readonly sendTimeout: number
}

/** An SSE comment: clients skip it, and proxies on the way see that the connection lives. */
const KEEP_ALIVE = ': keep-alive\n\n'
/** Time for the last event of a stream to reach a caller. */
const LAST_WORDS_MS = 1000
/** An answer that is not an event stream counts as a stream when it has been open for this long. */
const LASTING_MS = 1000
type LastWord = readonly [message: string, code: EndReason]
const NO_LONGER_ALLOWED: LastWord = ['You are no longer allowed to do this.', 'not-allowed']
const EXPIRED: LastWord = ['Your sign-in has expired: sign in again.', 'credential-expired']
const REVOKED: LastWord = ['Your access was revoked: sign in again.', 'credential-invalid']
/** Node's timers hold 31 bits: a longer delay would fire at once. */
const MAX_DELAY = 2 ** 31 - 1

/** Each answer asks `isRevoked` when it opens: its request may be older. The clock gives milliseconds since the epoch. */
export function makeOpenAnswers(
  clock: () => number,
  metrics: StreamMetrics,
  isRevoked: (owner: AnswerOwner) => boolean = () => false,
): OpenAnswers {
  interface Open {
    readonly owner: AnswerOwner
    readonly isStream: boolean
  }
  type End = (word: LastWord) => void
  const open = new Map<End, Open>()

  /** When an answer ends by rule, in milliseconds since the epoch; null for never. */
  const deadline = ({ credential }: AnswerOwner, rules: Pick<AnswerRules, 'tokenExpiry' | 'grace'>): number | null => {
    const expiresAt = credential?.expiresAt
    if (expiresAt === undefined || rules.tokenExpiry === 'ignore') return null
    return rules.tokenExpiry === 'close' ? expiresAt : expiresAt + rules.grace
  }

  const refusal: OpenAnswers['refusal'] = (owner, rules) => {
    if (isRevoked(owner)) return refuse('token-revoked')
    const endsAt = deadline(owner, rules)
    return endsAt !== null && endsAt <= clock() ? refuse('token-expired') : null
  }

  const at = (time: number, act: () => void): (() => void) => {
    let timer: NodeJS.Timeout | undefined
    const wait = (): void => {
      const left = time - clock()
      timer = left <= 0 ? undefined : setTimeout(wait, Math.min(left, MAX_DELAY))
      if (left <= 0) act()
    }
    wait()
    return () => clearTimeout(timer)
  }

  const pass: OpenAnswers['pass'] = (body, { response, head, takePlace, onEnded }, form, owner, rules) => {
    const isStream = form !== 'plain'
    const boundary = form === 'frames' ? frameBoundary() : eventBoundary()
    if (isStream) metrics.streamOpened()
    const keep = (): void => {
      // A slow reader has enough to read, and comments would pile up for it.
      if (boundary.between() && !response.writableEnded && !response.writableNeedDrain) response.write(KEEP_ALIVE)
    }
    let timer: NodeJS.Timeout | undefined
    let lasting: NodeJS.Timeout | undefined
    let cut: NodeJS.Timeout | undefined
    const reader = stallWatch(response, rules.sendTimeout, () => {
      onEnded('stalled')
      cutOff(response)
    })
    const end: End = ([message, code]) => {
      clearInterval(timer)
      if (cut !== undefined || response.writableFinished) return
      // A shutdown does not cut an answer that only waits for its reader.
      if (response.writableEnded && code === 'shutting-down') return
      onEnded(code)
      // The gateway no longer delivers what the reader has not taken, and a plain answer has no form for the reason.
      if (!isStream || response.writableEnded) {
        cutOff(response)
        return
      }
      if (form === 'events')
        response.write(`${boundary.between() ? '' : '\n\n'}data: ${JSON.stringify({ type: 'RUN_ERROR', message, code })}\n\n`)
      if (form === 'frames' && boundary.between()) response.write(binaryRunError(message, code))
      // The gateway cannot add an event in the middle of a frame: the caller must see a broken answer, not a short one.
      if (form === 'frames' && !boundary.between()) cutOff(response)
      else response.end()
      body.destroy()
      // A caller who does not read would otherwise keep the answer under way as long as they like.
      cut = setTimeout(() => response.destroy(), LAST_WORDS_MS)
    }
    open.set(end, { owner, isStream })
    let expiry = (): void => {}
    tie(response, body, () => {
      clearInterval(timer)
      clearTimeout(lasting)
      clearTimeout(cut)
      reader.stop()
      expiry()
      open.delete(end)
      if (isStream) metrics.streamClosed()
    })
    const over = refusal(owner, rules)
    // A body that has come whole needs no comments, so its length is right.
    if (over === null || isStream) head(over === null ? body.whole : undefined)
    if (over !== null) end(over.reason === 'token-revoked' ? REVOKED : EXPIRED)
    // The gateway passes on nothing of an answer that may not begin: its last event stays the last.
    if (!isOpen(response)) return true
    const sent = { begun: false }
    body.read({
      data(chunk) {
        sent.begun = true
        if (isStream) boundary.see(chunk)
        timer?.refresh()
        // A slow reader holds back its own answer only.
        const hasRoom = response.write(chunk)
        if (!hasRoom) reader.wait()
        return hasRoom
      },
      end(last) {
        sent.begun = true
        clearInterval(timer)
        endWith(response, last)
        if (hasMore(response)) reader.wait()
      },
      // The upstream broke off: the caller must see a broken answer, not a short one.
      broken: () => cutOff(response),
    })
    // An answer that the system took whole needs no timers.
    if (!isOpen(response) && !hasMore(response)) return true
    if (isOpen(response) && form === 'events' && rules.keepAlive > 0) timer = setInterval(keep, rules.keepAlive)
    const endsAt = deadline(owner, rules)
    if (endsAt !== null) expiry = at(endsAt, () => end(EXPIRED))
    if (takePlace !== null) lasting = setTimeout(() => void lastOn(takePlace), LASTING_MS)
    const lastOn = async (take: () => Promise<boolean>): Promise<void> => {
      if (!(await take()) && !response.writableFinished && !response.destroyed) {
        onEnded('rate-limited')
        cutOff(response)
      }
    }
    return sent.begun || response.writableEnded
  }

  return {
    pass,
    refusal,
    count: () => open.size,
    endAll: (message, code) => {
      for (const [end, { isStream }] of [...open]) if (isStream) end([message, code])
    },
    endRevoked: () => {
      for (const [end, { owner }] of [...open]) if (isRevoked(owner)) end(REVOKED)
    },
    owners: () => [...open.values()].map(({ owner }) => owner),
    endOf: (owners) => {
      for (const [end, { owner }] of [...open]) if (owners.has(owner)) end(NO_LONGER_ALLOWED)
    },
  }
}

function isOpen({ writableEnded, destroyed }: ServerResponse): boolean {
  return !writableEnded && !destroyed
}

function hasMore({ writableEnded, writableFinished, destroyed }: ServerResponse): boolean {
  return writableEnded && !writableFinished && !destroyed
}

interface Queue {
  readonly bytesWritten: number
  /** The part of `bytesWritten` that the system has not taken yet. */
  readonly writeQueueSize: number
}

/** The bytes of a connection that the system has taken: the gateway sees no more of its reader. */
function taken(socket: ServerResponse['socket']): number {
  const queue = (socket as { readonly _handle?: Queue | null } | null)?._handle
  return queue === undefined || queue === null ? 0 : queue.bytesWritten - queue.writeQueueSize
}

/** Calls `onStall` after `most` to twice `most` ms without progress (0: never). An answer behind another has no reader yet. */
function stallWatch(
  response: ServerResponse,
  most: number,
  onStall: () => void,
): { readonly wait: () => void; readonly stop: () => void } {
  let timer: NodeJS.Timeout | undefined
  const stop = (): void => {
    clearTimeout(timer)
    timer = undefined
  }
  const look = (before: number): void => {
    timer = setTimeout(() => {
      // A large write drains only when all is taken, and nothing drains after the end: so this counts the bytes taken.
      const now = taken(response.socket)
      if (response.socket === null || now !== before) look(now)
      else onStall()
    }, most)
  }
  let listens = false
  return {
    wait() {
      if (most === 0 || timer !== undefined) return
      if (!listens) {
        listens = true
        // First, before the body goes on: the body may write so much that its reader is awaited again.
        response.prependListener('drain', stop)
      }
      look(taken(response.socket))
    },
    stop,
  }
}
