/** Answers of the upstream's that the gateway reads and writes anew: the thread list, and /info for the other transport. */
import type { Json, JsonObject } from '../../core/json/read.ts'
import { writeInSteps } from '../../core/json/write-in-steps.ts'
import { refuse, type Reason, type Refusal } from '../../core/reasons.ts'
import { collect } from '../upstream/answer-body.ts'
import type { AnswerMemory } from './answer-memory.ts'
import { inTurns } from '../pipeline/turns.ts'
import { jsonOf, type UpstreamAnswer, type UpstreamFailure } from '../upstream/upstream.ts'

/** What became of one: a body to send, an answer of the upstream's to pass on, a failure, or a refusal. */
export type Rewritten = Written | Unread

export interface Written {
  readonly outcome: 'rewritten'
  readonly body: string | Buffer
  /** The threads that it tells of, each of which its caller has to be allowed to read for as long as it is sent. */
  readonly tellsOf?: readonly string[]
}

/** An upstream answer that is passed through unchanged. */
export type Unread = { readonly outcome: 'elsewise'; readonly answer: UpstreamAnswer } | UpstreamFailure | Refusal

/** A JSON value that an upstream answered. */
export interface ReadAnswer {
  readonly outcome: 'read'
  readonly value: Json
}

/** The bytes of an answer that says that it is JSON. */
export interface ReadBytes {
  readonly outcome: 'read'
  readonly bytes: Buffer
}

/**
 * Reads the bytes of an answer that has to be JSON.
 * @param most its bound
 * @param unreadable the reason for one that is too large, not JSON or oddly encoded (502)
 * @param memory where what it takes is held (503 where it isn't there); not for one that is small
 */
export async function readBytes(
  answer: UpstreamAnswer | UpstreamFailure,
  most: number,
  unreadable: Reason,
  memory?: AnswerMemory,
): Promise<ReadBytes | Unread> {
  if (answer.outcome === 'failed') return answer
  // Only 200 can be it; an error of the upstream's is passed on, anything else is not understood.
  if (answer.status !== 200) {
    if (answer.status >= 300) return { outcome: 'elsewise', answer }
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

/** Reads an answer that has to be JSON, as above. */
export async function readAnswer(
  answer: UpstreamAnswer | UpstreamFailure,
  most: number,
  unreadable: Reason,
  memory?: AnswerMemory,
): Promise<ReadAnswer | Unread> {
  const read = await readBytes(answer, most, unreadable, memory)
  if (read.outcome !== 'read') return read
  const value = jsonOf(read.bytes)
  return value === undefined ? refuse(unreadable) : { outcome: 'read', value }
}

/**
 * Writes an answer anew.
 * @param unreadable the reason for one that nests too deep to be written (502): this program reads deeper than it writes
 */
export function writtenAnew(value: unknown, unreadable: Reason): Rewritten {
  try {
    return { outcome: 'rewritten', body: JSON.stringify(value) }
  } catch {
    return refuse(unreadable)
  }
}

/** Writes an answer anew that may be long: others have their turn meanwhile. */
export async function writtenInTurns(value: JsonObject, unreadable: Reason): Promise<Rewritten> {
  try {
    const pieces = await inTurns(writeInSteps(value, { value: {}, texts: new Map() }))
    return { outcome: 'rewritten', body: Buffer.concat(pieces) }
  } catch (error) {
    if (error instanceof RangeError) return refuse(unreadable)
    throw error
  }
}
