/**
 * Checks that a run is of the thread of its request. The server streams the events of any run below any thread
 * (docs/contributing/langgraph-behaviour.md, "Runs").
 */
import { LANGGRAPH_RUN } from '../../core/route/langgraph-routes.ts'
import { isObject } from '../../core/json/read.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import { collect } from '../upstream/answer-body.ts'
import { jsonOf, upstreamRequest, type Upstream } from '../upstream/upstream.ts'
import type { Authorized } from '../pipeline/stages.ts'

/** Null for a run of the thread. */
export type CheckRun = (request: Authorized, headers: Readonly<Record<string, string>>) => Promise<Refusal | null>

/** A run comes with its input. */
const MAX_RUN_BYTES = 32 * 1024 * 1024

export function makeCheckRun(upstream: Upstream, basePath: string): CheckRun {
  return async ({ permit, upstream: facts, exchange }, headers) => {
    const { threadId, runId } = permit.descriptor.ids
    if (threadId === undefined || runId === undefined) return null
    const descriptor = { outcome: 'classified', route: LANGGRAPH_RUN, ids: { threadId, runId }, query: [] } as const
    const askedAt = performance.now()
    const answer = await upstream.send(upstreamRequest(facts, basePath, { descriptor, headers }), exchange.signal)
    exchange.timing.waited += performance.now() - askedAt
    if (answer.outcome === 'failed') return answer.refusal
    if (answer.status !== 200) {
      answer.body.destroy()
      return answer.status >= 400 && answer.status < 500 ? refuse('run-unknown') : refuse('upstream-answer-unreadable')
    }
    const bytes = await collect(answer.body, MAX_RUN_BYTES)
    if (bytes === 'broke-off') return refuse('upstream-broke-off')
    const run = bytes === 'too-large' ? undefined : jsonOf(bytes)
    if (!isObject(run)) return refuse('upstream-answer-unreadable')
    return run['thread_id'] === threadId && run['run_id'] === runId ? null : refuse('run-unknown')
  }
}
