/** Decision recorder: counts each decision, writes it to the audit, and compares it with the shadow policy. */
import type { AppParts } from '../http/listeners/app.ts'
import type { Logger } from '../observe/log.ts'
import type { RequestMetrics, RouteLabel } from '../observe/metrics.ts'
import type { OnDecision } from '../snapshot/manager.ts'
import type { ConfigSnapshot } from '../snapshot/snapshot.ts'
import { auditLine } from './line.ts'
import type { Audit } from './sinks.ts'
import { compareWithShadow } from './shadow.ts'

export interface DecisionRecorderParts {
  readonly audit: Audit
  readonly metrics: RequestMetrics
  readonly log: Logger
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly current: () => ConfigSnapshot
}

export interface DecisionRecorder {
  readonly take: OnDecision
  readonly takeUnreadable: AppParts['onUnreadable']
}

export function makeDecisionRecorder(parts: DecisionRecorderParts): DecisionRecorder {
  const { metrics, audit, log, clock } = parts
  return {
    take(snapshot, { head, record }, outcome) {
      const { id: requestId } = head
      const { descriptor, principal, observed, facts } = record
      const route: RouteLabel = descriptor?.route.id ?? 'none'
      const scope = record.upstream?.scope ?? ''
      metrics.decided(route, outcome === 'permitted' ? outcome : outcome.reason)
      if (observed !== null) metrics.wouldRefuse(route, observed)
      const { policy, shadow } = snapshot.prepared
      if (audit.isOn) {
        audit.write(
          auditLine({
            time: clock(),
            request: {
              id: requestId,
              client: head.address,
              transport: record.client,
              scope,
              principal,
              descriptor,
              latency: performance.now() - head.startedAt,
            },
            facts: facts ?? snapshot.factsOf(record.upstream?.key ?? ''),
            decision: { outcome, rule: record.rule, observed, hidden: record.hidden },
            configuration: { policy: policy.hash, claimPointers: policy.claimPointers, generation: snapshot.number },
          }),
        )
      }
      // A decision that never reached the policy can't differ by the policy.
      if (shadow === null || descriptor === null || principal === undefined || facts === null) return
      const decided = { requestId, route, descriptor, principal, facts, outcome }
      setImmediate(
        () =>
          void compareWithShadow(
            {
              enforced: policy.rules,
              shadow,
              recordOf: (threadId) => snapshot.recordOf({ scope, threadId }, principal),
              metrics,
              log,
            },
            decided,
          ),
      )
    },
    takeUnreadable(requestId, address, refusal) {
      metrics.decided('none', refusal.reason)
      if (!audit.isOn) return
      const current = parts.current()
      const { number, prepared } = current
      audit.write(
        auditLine({
          time: clock(),
          request: {
            id: requestId,
            client: address,
            transport: 'multi-route',
            scope: '',
            principal: undefined,
            descriptor: null,
            latency: null,
          },
          facts: current.factsOf(''),
          decision: { outcome: refusal, rule: undefined, observed: null, hidden: 0 },
          configuration: { policy: prepared.policy.hash, claimPointers: [], generation: number },
        }),
      )
    },
  }
}
