/** Asks the gateway one thing, reads the answer, and says all that can be wrong with it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dispatcher } from 'undici'
import type { Answer, Expectation, KindName } from './answer.ts'
import { EventReader } from './event-reader.ts'
import type { Token } from './issuer.ts'

/** What is asked. */
export interface Question {
  readonly kind: KindName
  readonly wanted: Expectation
  readonly method: 'GET' | 'POST'
  /** Below the base path. */
  readonly path: string
  readonly body?: object
  /** Null for none. */
  readonly token: Token | null
  /** Who asks, where that matters afterwards. */
  readonly subject?: string
  /** The thread that the answer has to be about; of a run also its run id. Without one nothing of the sort is looked at. */
  readonly threadId?: string
  readonly runId?: string
  /** The threads that a list has to hold, and no other. */
  readonly listed?: ReadonlySet<string>
  /** Leaves after so many events. */
  readonly leaveAfter?: number
  /** Waits so many milliseconds between two pieces of the answer. */
  readonly pause?: number
}

/** Under which the gateway serves. */
export const BASE = '/api/copilotkit'

/** What was read of an answer's body. */
type Read = Pick<Answer, 'code' | 'runError' | 'foreign' | 'fault'> & { readonly isLeft?: boolean }

const NOTHING: Read = { code: null, runError: null, foreign: null, fault: null }

/**
 * Asks.
 * @param signal ends it: the caller leaves
 * @returns the answer, whatever becomes of it
 */
export async function ask(client: Dispatcher, question: Question, signal: AbortSignal): Promise<Answer> {
  const { kind, wanted, token } = question
  const known = { kind, wanted, began: Date.now(), tokenEnds: token?.ends ?? null }
  let status: number | null = null
  let requestId: string | null = null
  let read: Read = NOTHING
  const over = (ending: Answer['ending'], fault = read.fault): Answer => ({
    ...known,
    ...{ ended: Date.now(), status, requestId, code: read.code, ending, runError: read.runError, foreign: read.foreign, fault },
  })
  const leaving = new AbortController()
  try {
    const answer = await client.request({
      method: question.method,
      path: `${BASE}${question.path}`,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token.text}` }),
        ...(question.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(question.body === undefined ? {} : { body: JSON.stringify(question.body) }),
      signal: AbortSignal.any([signal, leaving.signal]),
    })
    status = answer.statusCode
    requestId = String(answer.headers['x-request-id'] ?? '')
    if (String(answer.headers['content-type']).startsWith('text/event-stream')) {
      const events = new EventReader(question)
      for await (const bytes of answer.body) {
        read = { ...NOTHING, ...events.take(bytes as Buffer) }
        if (question.leaveAfter !== undefined && events.count >= question.leaveAfter) {
          leaving.abort()
          return over('left')
        }
        if (question.pause !== undefined) await sleep(question.pause)
      }
      read = { ...NOTHING, ...events.end() }
    } else read = readJson(question, status, await answer.body.text())
    return over('complete')
  } catch (error) {
    if (signal.aborted) return over('left')
    const { code, message } = error as { code?: string; message: string }
    // Where the head was there the answer was broken off; what came until then has been looked at.
    return status === null ? over('cut', code ?? message) : over('cut')
  }
}

function readJson({ threadId, listed }: Question, status: number, text: string): Read {
  let value: { code?: unknown; threadId?: unknown; threads?: unknown }
  try {
    value = JSON.parse(text) as typeof value
  } catch {
    return { ...NOTHING, fault: `no JSON: ${text.slice(0, 100)}` }
  }
  if (status >= 300) return { ...NOTHING, code: typeof value.code === 'string' ? value.code : null }
  if (threadId !== undefined && value.threadId !== threadId) {
    return { ...NOTHING, foreign: `of ${String(value.threadId)}, where ${threadId} was asked for` }
  }
  return listed === undefined ? NOTHING : readList(value.threads, listed)
}

function readList(threads: unknown, listed: ReadonlySet<string>): Read {
  if (!Array.isArray(threads)) return { ...NOTHING, fault: 'no list' }
  const ids = (threads as readonly { id: string }[]).map(({ id }) => id)
  const foreign = ids.find((id) => !listed.has(id))
  if (foreign !== undefined) return { ...NOTHING, foreign: `${foreign} is in the list` }
  return ids.length === listed.size ? NOTHING : { ...NOTHING, fault: `${ids.length} threads of ${listed.size} are in the list` }
}
