/** Decisions as one line each, so that a table of cases can spell out the whole of what it expects. */
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import type { decide } from '../../src/core/decide/decide.ts'
import { descriptor } from '../../testing/support/policies.ts'

/** `POST agent/a/run` on the thread `t-1`, which a body names on some routes. `PATCH threads/t-1 with archived` archives. */
export function requestOf(request: string): RouteDescriptor {
  const [method = '', path = '', ...more] = request.split(' ')
  const found = descriptor(method, path)
  const about = found.route.thread === 'body' ? { ...found, ids: { ...found.ids, threadId: 't-1' } } : found
  return more.length === 0 ? about : { ...about, ownerOnly: true }
}

/**
 * - `needs record`, or `needs upstreamHistory for RULE`
 * - `refused: REASON (CODE)`, with ` by RULE` where one rule refuses
 * - `permitted by RULE for OWNER`, then each duty that the permit carries: `begins`, `claim`, `empty`, `unsettled`, `observed REASON`
 */
export function lineOf(decision: ReturnType<typeof decide>): string {
  if (decision.outcome === 'needs') {
    return decision.fact === 'record' ? 'needs record' : `needs upstreamHistory for ${decision.rule.name}`
  }
  if (decision.outcome === 'refused') {
    const { reason, code, rule } = decision
    return `refused: ${reason} (${code})${rule === undefined ? '' : ` by ${rule.name}`}`
  }
  const duties = [
    decision.begins ? 'begins' : [],
    decision.claim ? 'claim' : [],
    decision.answerEmpty ? 'empty' : [],
    decision.isUnsettled ? 'unsettled' : [],
    decision.observed === null ? [] : `observed ${decision.observed}`,
  ].flat()
  return [`permitted by ${decision.rule.name} for ${decision.owner}`, ...duties].join(', ')
}
