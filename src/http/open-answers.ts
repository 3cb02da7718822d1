/**
 * Event streams on their way to callers: passed on event by event, kept alive while the upstream is silent, ended by
 * rule with an event that the client can see (design "Streams").
 */
import type { ServerResponse } from 'node:http'
import type { Credential } from '../core/credential.ts'
import type { Permit } from '../core/decide.ts'
import { binaryRunError, frameBoundary } from '../core/binary-events.ts'
import { eventBoundary } from '../core/event-boundary.ts'
import type { StreamForm } from '../core/headers.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { AnswerBody } from './answer-body.ts'
import { cutOff, endWith, tie } from './connection-answers.ts'

/** Whose a stream is, and how long their credential is good. */
export interface AnswerOwner {
  /** The user id, or `anonymous`. */
  readonly userId: string
  readonly credential: Credential | null
  /** What allowed it. */
  readonly permit?: Permit
}

/** Where a stream goes to. */
export interface Caller {
  readonly response: ServerResponse
  /** Writes the head. @param length of what follows in bytes, where that is known: nothing else may follow then */
  readonly head: (length?: number) => void
}

/** The streams that are open now. */
export interface OpenAnswers {
  /**
   * Passes an event stream on.
   * @param body the upstream's answer
   * @param caller who gets it
   * @param rules by which it goes, and goes on whatever is configured meanwhile
   * @returns true if something of it is on its way already, and the head with it
   */
  pass(body: AnswerBody, caller: Caller, form: StreamForm, owner: AnswerOwner, rules: StreamRules): boolean
  count(): number
  /** Ends all of them, each with a RUN_ERROR event. */
  endAll(message: string, code: string): void
  /** Ends those whose credential was revoked. */
  endRevoked(): void
  /** Whose streams are open. */
  owners(): readonly AnswerOwner[]
  /** Ends those of these owners, the very objects: a new policy no longer allows what they are. */
  endOf(owners: ReadonlySet<AnswerOwner>): void
}

/** Rules of streams. */
export interface StreamRules {
  /** Milliseconds of silence before a comment is sent; 0 for none. */
  readonly keepAlive: number
  /** What becomes of a stream whose credential ends. */
  readonly tokenExpiry: 'close' | 'grace' | 'ignore'
  /** Milliseconds that a stream may go on with `grace`. */
  readonly grace: number
}

/** A comment: clients skip it, proxies on the way see that the connection lives. */
const KEEP_ALIVE = ': keep-alive\n\n'
/** Time for the last event of a stream to reach a caller. */
const LAST_WORDS_MS = 1000
/** What a stream is ended with: message and code of a RUN_ERROR. */
type LastWord = readonly [string, string]
const NO_LONGER_ALLOWED: LastWord = ['You are no longer allowed to do this.', 'not-allowed']
const EXPIRED: LastWord = ['Your sign-in has expired: sign in again.', 'credential-expired']
const REVOKED: LastWord = ['Your access was revoked: sign in again.', 'credential-invalid']
/** Node's timers hold 31 bits: a longer delay would fire at once. */
const MAX_DELAY = 2 ** 31 - 1

/**
 * Makes the register of open streams.
 * @param clock milliseconds since the epoch
 * @param isRevoked asked of each stream when it opens: its request may be older than the revocation
 */
export function makeOpenAnswers(
  clock: () => number,
  metrics: Metrics,
  isRevoked: (owner: AnswerOwner) => boolean = () => false,
): OpenAnswers {
  type End = (message: string, code: string) => void
  const open = new Map<End, AnswerOwner>()

  /** When a stream ends by rule: null for never. */
  const deadline = ({ credential }: AnswerOwner, rules: StreamRules): number | null => {
    const expiresAt = credential?.expiresAt
    if (expiresAt === undefined || rules.tokenExpiry === 'ignore') return null
    return rules.tokenExpiry === 'close' ? expiresAt : expiresAt + rules.grace
  }

  /** Calls at a time, however far away that is; gives what takes it back. */
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

  const pass: OpenAnswers['pass'] = (body, { response, head }, form, owner, rules) => {
    const boundary = form === 'frames' ? frameBoundary() : eventBoundary()
    metrics.streamOpened()
    const keep = (): void => {
      // Who reads too slowly has enough to read, and would be kept one more each time.
      if (boundary.between() && !response.writableEnded && !response.writableNeedDrain) response.write(KEEP_ALIVE)
    }
    let timer: NodeJS.Timeout | undefined
    let cut: NodeJS.Timeout | undefined
    const end: End = (message, code) => {
      clearInterval(timer)
      if (response.writableEnded) return
      if (form === 'events')
        response.write(`${boundary.between() ? '' : '\n\n'}data: ${JSON.stringify({ type: 'RUN_ERROR', message, code })}\n\n`)
      if (form === 'frames' && boundary.between()) response.write(binaryRunError(message, code))
      // Nothing can be said in the middle of a frame: the caller must see a broken answer, not a short one.
      if (form === 'frames' && !boundary.between()) cutOff(response)
      else response.end()
      body.destroy()
      // A caller who does not read would otherwise keep what is under way as long as they like.
      cut = setTimeout(() => response.destroy(), LAST_WORDS_MS)
    }
    open.set(end, owner)
    let expiry = (): void => {}
    tie(response, body, () => {
      clearInterval(timer)
      clearTimeout(cut)
      expiry()
      open.delete(end)
      metrics.streamClosed()
    })
    const endsAt = deadline(owner, rules)
    const over: LastWord | null = isRevoked(owner) ? REVOKED : endsAt !== null && endsAt <= clock() ? EXPIRED : null
    // What has come whole needs no comments, and its length holds.
    head(over === null ? body.whole : undefined)
    if (over !== null) end(...over)
    // Nothing is handed on of a stream that may not even begin, and its last word stands.
    if (!isOpen(response)) return true
    const sent = { begun: false }
    body.read({
      data(chunk) {
        sent.begun = true
        boundary.see(chunk)
        timer?.refresh()
        // A slow reader holds back its own stream only.
        return response.write(chunk)
      },
      end(last) {
        sent.begun = true
        clearInterval(timer)
        endWith(response, last)
      },
      // The upstream broke off: the caller must see a broken answer, not a short one.
      broken: () => cutOff(response),
    })
    // One that came whole needs no timers.
    if (isOpen(response)) {
      if (form === 'events' && rules.keepAlive > 0) timer = setInterval(keep, rules.keepAlive)
      if (endsAt !== null) expiry = at(endsAt, () => end(...EXPIRED))
    }
    return sent.begun || response.writableEnded
  }

  return {
    pass,
    count: () => open.size,
    endAll: (message, code) => {
      for (const end of [...open.keys()]) end(message, code)
    },
    endRevoked: () => {
      for (const [end, owner] of [...open]) if (isRevoked(owner)) end(...REVOKED)
    },
    owners: () => [...open.values()],
    endOf: (owners) => {
      for (const [end, owner] of [...open]) if (owners.has(owner)) end(...NO_LONGER_ALLOWED)
    },
  }
}

/** True for an answer that may still be written to. */
function isOpen({ writableEnded, destroyed }: ServerResponse): boolean {
  return !writableEnded && !destroyed
}
