/** Passes answers on as they come, ends them when their access ends, and cuts them when their reader takes nothing. */
import type { ServerResponse } from 'node:http'
import type { Credential } from '../../core/decide/credential.ts'
import type { Permit } from '../../core/decide/decide.ts'
import type { Route } from '../../core/route/routes.ts'
import { binaryRunError, eventBoundary, frameBoundary, type EventBoundary } from '../../core/wire/event-streams.ts'
import type { StreamForm } from '../../core/wire/headers.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import type { EndReason, StreamEnd, StreamMetrics } from '../../observe/metrics.ts'
import type { RunBudget } from '../pipeline/run-budget.ts'
import type { AnswerBody, BodyReader } from './answer-body.ts'

export interface AnswerOwner {
  readonly requestId: string
  readonly userId: string
  readonly credential: Credential | null
  /** What allowed the answer; without a permit, the answer is not checked again. */
  readonly permit?: Permit | undefined
  readonly tellsOf?: readonly string[] | undefined
}

export interface OpenStream {
  readonly owner: AnswerOwner
  /** Milliseconds since the epoch. */
  readonly openedAt: number
}

export type AnswerForm = StreamForm | 'plain'

export interface Caller {
  readonly response: ServerResponse
  /** @param length the bytes that follow, where that is known: nothing else may follow then */
  readonly head: (length?: number) => void
  /** Takes a place among the caller's open streams; false if none is left. Null where a place was taken already. */
  readonly takePlace: (() => Promise<boolean>) | null
  /** Null where no budget of tokens applies. */
  readonly budget: RunBudget | null
  readonly onEnded: (why: EndReason) => void
}

export interface OpenAnswers {
  /**
   * Applies `rules` whatever is configured meanwhile.
   * @returns `over` if nothing of the answer can be stopped any more; `waiting` if no byte of head or body was sent yet
   */
  pass(body: AnswerBody, caller: Caller, form: AnswerForm, owner: AnswerOwner, rules: AnswerRules): 'over' | 'begun' | 'waiting'
  /** Null if the answer may begin; its credential may have been revoked, or end streams by now. */
  refusal(owner: AnswerOwner, rules: Pick<AnswerRules, 'tokenExpiry' | 'grace'>): Refusal | null
  count(): number
  endAll(message: string, code: 'shutting-down'): void
  endRevoked(): void
  owners(): readonly AnswerOwner[]
  streams(): readonly OpenStream[]
  /** True if a stream of this request was open. */
  endStream(requestId: string): boolean
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
const BY_OPERATOR: LastWord = ['An operator has ended this answer.', 'ended-by-operator']
const OVER_BUDGET: LastWord = ['The token budget is used up: try again later.', 'budget-exceeded']
const REVOKED: LastWord = ['Your access was revoked: sign in again.', 'credential-invalid']

/** A client of a LangGraph server knows no event of AG-UI. */
function lastEvent(route: Route | undefined, message: string, code: string): string {
  return route?.api === 'langgraph'
    ? `event: error\ndata: ${JSON.stringify({ error: code, message })}\n\n`
    : `data: ${JSON.stringify({ type: 'RUN_ERROR', message, code })}\n\n`
}

/** Node's timers hold 31 bits: a longer delay would fire at once. */
const MAX_DELAY = 2 ** 31 - 1

/** Each answer asks `isRevoked` when it opens: its request may be older. The clock gives milliseconds since the epoch. */
export function makeOpenAnswers(
  clock: () => number,
  metrics: StreamMetrics,
  isRevoked: (userId: string, credential: Credential) => boolean = () => false,
): OpenAnswers {
  interface Open {
    readonly owner: AnswerOwner
    /** Milliseconds since the epoch; null for an answer that is no event stream. */
    readonly openedAt: number | null
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
    const { userId, credential } = owner
    if (credential === null) return null
    if (isRevoked(userId, credential)) return refuse('token-revoked')
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

  const pass: OpenAnswers['pass'] = (body, caller, form, owner, rules) => {
    const { response, head, takePlace, budget } = caller
    const isStream = form !== 'plain'
    budget?.answered(form === 'events' || form === 'frames' ? form : null)
    let boundary: EventBoundary | null = null
    let keepAlive: NodeJS.Timeout | undefined
    let lasting: NodeJS.Timeout | undefined
    let cut: NodeJS.Timeout | undefined
    let watch: StallWatch | null = null
    let expiry = (): void => {}
    let state: 'begun' | 'waiting' = 'waiting'
    let ended: StreamEnd | null = null
    const onEnded = (why: EndReason): void => {
      ended = why
      caller.onEnded(why)
    }
    // A connection that fails counts as closed: no error of a caller may reach the process.
    response.on('error', () => response.destroy())

    const isBetween = (): boolean => boundary === null || boundary.between()
    const awaitReader = (): void => {
      if (rules.sendTimeout === 0) return
      watch ??= stallWatch(response, rules.sendTimeout, () => {
        onEnded('stalled')
        cutOff(response)
      })
      watch.wait()
    }
    const over = refusal(owner, rules)
    const isWhole = over === null && body.whole !== undefined && !response.destroyed
    const end: End = ([message, code]) => {
      clearInterval(keepAlive)
      if (cut !== undefined || response.writableFinished) return
      // A shutdown does not cut an answer that only waits for its reader.
      if (response.writableEnded && code === 'shutting-down') return
      onEnded(code)
      // The gateway no longer delivers what the reader has not taken. A plain answer has no form for the reason, and an answer
      // with a length no room: the caller would take the next answer for the rest of this one.
      if (!isStream || isWhole || response.writableEnded) {
        cutOff(response)
        return
      }
      if (form === 'events')
        response.write(`${isBetween() ? '' : '\n\n'}${lastEvent(owner.permit?.descriptor.route, message, code)}`)
      if (form === 'frames' && isBetween()) response.write(binaryRunError(message, code))
      // The gateway cannot add an event in the middle of a frame: the caller must see a broken answer, not a short one.
      if (form === 'frames' && !isBetween()) cutOff(response)
      else response.end()
      body.destroy()
      // A caller who does not read would otherwise keep the answer under way as long as they like.
      cut = setTimeout(() => response.destroy(), LAST_WORDS_MS)
    }
    const reader: BodyReader = {
      data(chunk) {
        state = 'begun'
        if (isStream) (boundary ??= form === 'frames' ? frameBoundary() : eventBoundary()).see(chunk)
        keepAlive?.refresh()
        // A slow reader holds back its own answer only.
        const hasRoom = response.write(chunk)
        if (budget?.see(chunk) === false && !isWhole) {
          end(OVER_BUDGET)
          return false
        }
        if (!hasRoom) awaitReader()
        return hasRoom
      },
      end(last) {
        state = 'begun'
        clearInterval(keepAlive)
        if (last !== undefined) budget?.see(last)
        budget?.over('upstream')
        if (last === undefined) response.end()
        else if (last.length > ONE_PIECE) response.end(last)
        // Node joins only text with the head; in this encoding each byte is one character, and each character one byte.
        else response.end(last.toString('latin1'), 'latin1')
        if (!isOver(response)) awaitReader()
      },
      // The upstream broke off: the caller must see a broken answer, not a short one.
      broken(error) {
        // The upstream request of a caller who left is aborted, which is no failure of the upstream.
        if (!response.destroyed) {
          ended ??= 'upstream-broke-off'
          // A run may go on after a pause that was too long for the gateway.
          budget?.over(isTimeout(error) ? 'gateway' : 'upstream')
        }
        cutOff(response)
      },
    }

    if (isWhole) {
      // A body that has come whole needs no comments, so its length is right.
      try {
        head(body.whole)
        body.read(reader)
      } catch (error) {
        body.destroy()
        throw error
      }
      if (isOver(response)) return 'over'
    }
    const openedAt = isStream ? performance.now() : 0
    if (isStream) metrics.streamOpened()
    open.set(end, { owner, openedAt: isStream ? clock() : null })
    const closed = (): void => {
      body.destroy()
      clearInterval(keepAlive)
      clearTimeout(lasting)
      clearTimeout(cut)
      watch?.stop()
      expiry()
      open.delete(end)
      if (!isStream) return
      const why = ended ?? (response.writableFinished ? 'complete' : 'caller-left')
      metrics.streamClosed(why, (performance.now() - openedAt) / 1000)
    }
    response.on('drain', () => body.resume())
    if (response.destroyed) {
      closed()
      return 'over'
    }
    response.once('close', closed)
    if (over !== null) {
      // The gateway passes on nothing of an answer that may not begin: its last event stays the last.
      if (isStream) head()
      end(over.reason === 'token-revoked' ? REVOKED : EXPIRED)
      return 'begun'
    }
    if (!isWhole) {
      head()
      body.read(reader)
    }
    if (isOver(response)) return 'over'
    const endsAt = deadline(owner, rules)
    if (endsAt !== null) expiry = at(endsAt, () => end(EXPIRED))
    const lastOn = async (take: () => Promise<boolean>): Promise<void> => {
      if (!(await take()) && !response.writableFinished && !response.destroyed) {
        onEnded('rate-limited')
        cutOff(response)
      }
    }
    if (takePlace !== null) lasting = setTimeout(() => void lastOn(takePlace), LASTING_MS)
    const keep = (): void => {
      // A slow reader has enough to read, and comments would pile up for it.
      if (isBetween() && !response.writableEnded && !response.writableNeedDrain) response.write(KEEP_ALIVE)
    }
    if (form === 'events' && rules.keepAlive > 0 && !isWhole) keepAlive = setInterval(keep, rules.keepAlive)
    return state
  }

  return {
    pass,
    refusal,
    count: () => open.size,
    endAll: (message, code) => {
      for (const [end, { openedAt }] of [...open]) if (openedAt !== null) end([message, code])
    },
    endRevoked: () => {
      for (const [end, { owner }] of [...open]) {
        if (owner.credential !== null && isRevoked(owner.userId, owner.credential)) end(REVOKED)
      }
    },
    streams: () => [...open.values()].flatMap(({ owner, openedAt }) => (openedAt === null ? [] : [{ owner, openedAt }])),
    endStream(requestId) {
      const found = [...open].filter(([, { owner, openedAt }]) => openedAt !== null && owner.requestId === requestId)
      for (const [end] of found) end(BY_OPERATOR)
      return found.length > 0
    },
    owners: () => [...open.values()].map(({ owner }) => owner),
    endOf: (owners) => {
      for (const [end, { owner }] of [...open]) if (owners.has(owner)) end(NO_LONGER_ALLOWED)
    },
  }
}

/** An answer that waits behind others has no socket yet: Node would leave its caller waiting, so this closes the connection. */
function cutOff(response: ServerResponse): void {
  if (response.socket === null) response.req.socket.destroy()
  response.destroy()
}

/** Up to so many bytes go out in one piece with the head, which is quicker than two. */
const ONE_PIECE = 16 * 1024

/** True if the system has taken the whole answer, so that no slow reader holds it back, or the connection is closed. */
function isOver({ destroyed, writableEnded, writableLength, socket }: ServerResponse): boolean {
  return destroyed || (writableEnded && writableLength === 0 && (socket as Queued)?._handle?.writeQueueSize === 0)
}

interface Queue {
  readonly bytesWritten: number
  /** The part of `bytesWritten` that the system has not taken yet. */
  readonly writeQueueSize: number
}

/** Node's types do not name the handle of a socket. */
type Queued = { readonly _handle?: Queue | null } | null

/** The bytes of a connection that the system has taken: the gateway sees no more of its reader. */
function taken(socket: ServerResponse['socket']): number {
  const queue = (socket as Queued)?._handle
  return queue === undefined || queue === null ? 0 : queue.bytesWritten - queue.writeQueueSize
}

interface StallWatch {
  readonly wait: () => void
  readonly stop: () => void
}

/** Calls `onStall` after `most` to twice `most` ms without progress. An answer behind another has no reader yet. */
function stallWatch(response: ServerResponse, most: number, onStall: () => void): StallWatch {
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
      if (timer !== undefined) return
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

function isTimeout(error: Error): boolean {
  return 'code' in error && error.code === 'UND_ERR_BODY_TIMEOUT'
}
