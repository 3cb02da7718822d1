/** Reads and rewrites upstream answers: the thread list, and /info for the other transport. */
import type { Json, JsonObject } from '../../core/json/read.ts'
import { writeInSteps } from '../../core/json/write-in-steps.ts'
import { refuse, type Reason, type Refusal } from '../../core/reasons.ts'
import { collect } from '../upstream/answer-body.ts'
import type { AnswerMemory } from './answer-memory.ts'
import { inTurns } from '../pipeline/event-loop-turns.ts'
import { jsonOf, type UpstreamAnswer, type UpstreamFailure } from '../upstream/upstream.ts'

export type Rewritten = Written | Unread

export interface Written {
  readonly outcome: 'rewritten'
  readonly body: string | Buffer
  /** Headers of the upstream's answer that belong to the body, in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  /** The threads in the answer. Its caller has to be allowed to read each of them for as long as the answer is sent. */
  readonly tellsOf?: readonly string[]
}

export type Unread = { readonly outcome: 'passthrough'; readonly answer: UpstreamAnswer } | UpstreamFailure | Refusal

/**
 * @param most in bytes
 * @param unreadable the reason for an answer that is too large, not JSON or oddly encoded (502)
 * @param memory for a large answer (503 if there is not enough)
 */
export async function readBytes(
  answer: UpstreamAnswer | UpstreamFailure,
  most: number,
  unreadable: Reason,
  memory?: AnswerMemory,
): Promise<{ readonly outcome: 'read'; readonly bytes: Buffer } | Unread> {
  if (answer.outcome === 'failed') return answer
  // Only 200 has the expected body; an upstream error is passed on, any other status is not understood.
  if (answer.status !== 200) {
    if (answer.status >= 300) return { outcome: 'passthrough', answer }
    answer.body.destroy()
    return refuse(unreadable)
  }
  const type = String(answer.headers['content-type'] ?? '').toLowerCase()
  const encoding = String(answer.headers['content-encoding'] ?? 'identity').toLowerCase()
  const readable = /^application\/json\s*(?:;\s*charset=utf-8\s*)?$/.test(type) && encoding === 'identity'
  if (!readable) {
    answer.body.destroy()
    return refuse(unreadable)
  }
  const bytes = await collect(answer.body, most, (come) => memory?.reads(come) ?? true)
  if (typeof bytes !== 'string') return { outcome: 'read', bytes }
  return refuse(memory?.lacked === true ? 'bodies-budget-exhausted' : unreadable)
}

export async function readAnswer(
  answer: UpstreamAnswer | UpstreamFailure,
  most: number,
  unreadable: Reason,
  memory?: AnswerMemory,
): Promise<{ readonly outcome: 'read'; readonly value: Json } | Unread> {
  const read = await readBytes(answer, most, unreadable, memory)
  if (read.outcome !== 'read') return read
  const value = jsonOf(read.bytes)
  return value === undefined ? refuse(unreadable) : { outcome: 'read', value }
}

/** @param unreadable the reason for an answer nested too deep to write (502): the gateway reads deeper than it writes */
export function writtenAnew(value: unknown, unreadable: Reason): Rewritten {
  try {
    return { outcome: 'rewritten', body: JSON.stringify(value) }
  } catch {
    return refuse(unreadable)
  }
}

export async function writtenInTurns(value: JsonObject, unreadable: Reason): Promise<Rewritten> {
  try {
    const pieces = await inTurns(writeInSteps(value, { value: {}, texts: new Map() }))
    return { outcome: 'rewritten', body: Buffer.concat(pieces) }
  } catch (error) {
    if (error instanceof RangeError) return refuse(unreadable)
    throw error
  }
}
