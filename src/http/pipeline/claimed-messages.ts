/** Verifies earlier messages of a run with the upstream (policy: `messages.history: verify`). */
import { setTimeout as sleep } from 'node:timers/promises'
import { isForged, type ClaimedHistory } from '../../core/route/claimed-history.ts'
import { classify, type RouteDescriptor } from '../../core/route/classify.ts'
import { parsedInSteps } from '../../core/json/pieces.ts'
import { isObject, type Json } from '../../core/json/read.ts'
import { isRefusal, refuse, type Refusal } from '../../core/reasons.ts'
import { hasOperation, type RuntimeFacts } from '../../core/route/transport.ts'
import { AnswerMemory } from '../lists/answer-memory.ts'
import { readBytes } from '../lists/rewriting.ts'
import { upstreamRequest, type ClientDisconnect, type Upstream } from '../upstream/upstream.ts'
import { firstTurn, inTurns } from './event-loop-turns.ts'
import type { BodyBudget } from './request-body.ts'

const MOST_BYTES = 32 * 1024 * 1024

/** Milliseconds before the question is asked again: a client may have a run's last message before the runtime has stored it. */
const AGAIN_AFTER = [100, 400]

/** @returns a refusal (403) of a forged history, or 502, 503 or 504 where the upstream tells no history */
export type VerifyMessages = (
  facts: RuntimeFacts,
  threadId: string,
  claimed: ClaimedHistory,
  headers: Readonly<Record<string, string>>,
  budget: BodyBudget,
  signal: ClientDisconnect,
) => Promise<Refusal | null>

export function makeVerifyMessages(upstream: Upstream, basePath: string): VerifyMessages {
  return async (facts, threadId, claimed, headers, budget, signal) => {
    const descriptor = classify('GET', ['threads', threadId, 'messages'], new Map()) as RouteDescriptor
    if (facts.histories === false || !hasOperation(facts, descriptor.route)) return refuse('history-not-served')
    const asked = { ...headers, accept: 'application/json', 'accept-encoding': 'identity' }
    const memory = new AnswerMemory(budget)
    try {
      for (const wait of [...AGAIN_AFTER, null]) {
        const answer = await upstream.send(upstreamRequest(facts, basePath, { descriptor, headers: asked }), signal)
        if (answer.outcome === 'failed') return answer.refusal
        if (answer.status !== 200) {
          answer.body.destroy()
          return refuse('history-not-served')
        }
        const read = await readBytes(answer, MOST_BYTES, 'upstream-answer-unreadable', memory)
        if (read.outcome !== 'read') return isRefusal(read) ? read : refuse('history-not-served')
        await firstTurn(read.bytes.length)
        const compared = await comparedWith(read.bytes, claimed)
        if (compared === 'no-history') return refuse('history-not-served')
        if (compared === 'genuine') return null
        if (wait !== null) await sleep(wait)
      }
      return refuse('history-forged')
    } finally {
      memory.release()
    }
  }
}

/** Runs after `firstTurn`, in a frame of its own. @param bytes the upstream's history */
async function comparedWith(bytes: Buffer, claimed: ClaimedHistory): Promise<'genuine' | 'forged' | 'no-history'> {
  const value = await inTurns(parsedInSteps(bytes, 'messages'))
  const kept: Json | undefined = isObject(value) ? value['messages'] : undefined
  if (!Array.isArray(kept)) return 'no-history'
  return (await inTurns(isForged(claimed, kept as readonly Json[]))) ? 'forged' : 'genuine'
}
