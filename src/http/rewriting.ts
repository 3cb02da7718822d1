/** Answers of the upstream's that the gateway reads and writes anew: the thread list, and /info for the other transport. */
import { setImmediate } from 'node:timers/promises'
import type { Json } from '../core/json.ts'
import { parsedInPieces } from '../core/json-pieces.ts'
import { refuse, type Reason, type Refusal } from '../core/reasons.ts'
import { collect } from './answer-body.ts'
import { jsonOf, type UpstreamAnswer, type UpstreamFailure } from './upstream.ts'

/** What became of one: a body to send, an answer of the upstream's to pass on, a failure, or a refusal. */
export type Rewritten = { readonly outcome: 'rewritten'; readonly body: string } | Unread

/** An answer that there is nothing to write anew of. */
export type Unread = { readonly outcome: 'elsewise'; readonly answer: UpstreamAnswer } | UpstreamFailure | Refusal

/** A JSON value that an upstream answered. */
export interface ReadAnswer {
  readonly outcome: 'read'
  readonly value: Json
}

/**
 * Reads an answer that has to be JSON.
 * @param most its bound in bytes
 * @param unreadable the reason for one that is too large, not JSON or oddly encoded (502)
 * @param list the name of a member with a long list: others have their turn while it is read
 */
export async function readAnswer(
  answer: UpstreamAnswer | UpstreamFailure,
  most: number,
  unreadable: Reason,
  list?: string,
): Promise<ReadAnswer | Unread> {
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
  if (!readable) answer.body.destroy()
  const bytes = readable ? await collect(answer.body, most) : 'unreadable'
  const value = typeof bytes === 'string' ? undefined : list === undefined ? jsonOf(bytes) : await jsonInTurns(bytes, list)
  return value === undefined ? refuse(unreadable) : { outcome: 'read', value }
}

async function jsonInTurns(bytes: Buffer, list: string): Promise<Json | undefined> {
  const reading = parsedInPieces(bytes, list)
  for (;;) {
    const { done, value } = reading.next()
    if (done === true) return value
    await setImmediate()
  }
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
