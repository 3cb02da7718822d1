/** The snapshot of a request without a gateway around it: nothing changes, and no other configuration comes. */
import { refuse } from '../../core/reasons.ts'
import type { Pipeline, RequestSnapshot } from '../../http/pipeline/stages.ts'

export function steadySnapshot(pipeline: Pipeline, more: Partial<RequestSnapshot> = {}): RequestSnapshot {
  return {
    pipeline,
    upstreamKey: '',
    mark: () => 0,
    outdated: () => false,
    isReplaced: () => false,
    refusal: () => null,
    hidden: () => null,
    opened: () => {},
    decided: () => {},
    successor: () => refuse('rules-changed'),
    release: () => {},
    ...more,
  }
}
