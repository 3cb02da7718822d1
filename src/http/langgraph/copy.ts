/** Makes the copy of a thread its caller's, before the caller learns its id. */
import { isObject } from '../../core/json/read.ts'
import { isThreadId } from '../../core/route/ids.ts'
import { isRefusal, refuse } from '../../core/reasons.ts'
import type { StandingFacts } from '../../core/decide/decide.ts'
import type { RequestMetrics } from '../../observe/metrics.ts'
import type { ClaimStore } from '../../store/port/claims.ts'
import type { AnswerMemory } from '../lists/answer-memory.ts'
import { readAnswer, writtenAnew, type Rewritten } from '../lists/rewriting.ts'
import type { Authorized } from '../pipeline/stages.ts'
import type { Forwarder } from '../upstream/forward.ts'

export interface CopyParts {
  readonly store: Pick<ClaimStore, 'claim' | 'settle'>
  readonly scope: string
  readonly facts: Pick<StandingFacts, 'enforcement'>
  readonly forwarder: Pick<Forwarder, 'ask' | 'refusal'>
  readonly metrics: Pick<RequestMetrics, 'claimed'>
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

export type CopyThread = (request: Authorized, memory: AnswerMemory) => Promise<Rewritten>

const MAX_THREAD_BYTES = 1024 * 1024

export function makeCopyThread({ store, scope, facts, forwarder, metrics, clock }: CopyParts): CopyThread {
  return async (request, memory) => {
    const { permit, payload } = request
    const answer = await forwarder.ask(request, { payload })
    const read = await readAnswer(answer, MAX_THREAD_BYTES, 'upstream-answer-unreadable', memory)
    if (read.outcome !== 'read') return read
    const threadId = isObject(read.value) ? read.value['thread_id'] : undefined
    if (!isThreadId(threadId) || threadId === permit.descriptor.ids.threadId) return refuse('upstream-answer-unreadable')
    const written = writtenAnew(read.value, 'upstream-answer-unreadable')
    // Under `observe` no user becomes an owner.
    if (facts.enforcement === 'observe' || written.outcome !== 'rewritten') return written
    // What the server copied may have been taken from the caller meanwhile: then the copy has no owner.
    const late = await forwarder.refusal(request)
    if (isRefusal(late)) return late
    const key = { scope, threadId }
    const userId = permit.principal.id
    const claim = await store.claim(key, { userId, agentId: '', guest: false, now: clock() })
    // The id is in use: whatever the server has there, it is no copy for this caller.
    if (claim.outcome !== 'new' || claim.registration === null) return refuse('upstream-answer-unreadable')
    await store.settle(key, userId, claim.registration, 'confirmed')
    metrics.claimed('new')
    return { ...written, tellsOf: [threadId] }
  }
}
