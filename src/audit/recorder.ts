/** Decision recorder: counts each decision, writes it to the audit, and compares it with the shadow policy. */
import type { AppParts } from '../http/listeners/app.ts'
import type { Logger } from '../observe/log.ts'
import type { RequestMetrics, RouteLabel } from '../observe/metrics.ts'
import type { OnDecision } from '../snapshot/manager.ts'
import type { ConfigSnapshot } from '../snapshot/snapshot.ts'
import { makeAuditText, type AuditedDecision } from './line.ts'
import type { RecentDecisions } from './recent.ts'
import type { Audit } from './sinks.ts'
import { compareWithShadow } from './shadow.ts'

export interface DecisionRecorderParts {
  readonly audit: Audit
  /** Null where no operator can ask for them. */
  readonly recent: RecentDecisions | null
  readonly metrics: RequestMetrics
  readonly log: Logger
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly current: () => ConfigSnapshot
}

export function makeDecisionRecorder({ metrics, audit, recent, log, clock, current }: DecisionRecorderParts): {
  readonly take: OnDecision
  readonly takeUnreadable: AppParts['onUnreadable']
} {
  const textOf = makeAuditText()
  const isKept = audit.isOn || recent !== null
  const write = (
    { number, prepared: { policy } }: ConfigSnapshot,
    claimPointers: readonly string[],
    decided: Pick<AuditedDecision, 'request' | 'facts' | 'decision'>,
  ): void => {
    const configuration = { policy: policy.hash, claimPointers, generation: number }
    const whole = { time: clock(), ...decided, configuration }
    recent?.add(whole)
    if (audit.isOn) audit.write(textOf(whole))
  }
  return {
    take(snapshot, { head, record }, outcome) {
      const { id: requestId } = head
      const { descriptor, principal, credential, observed, facts } = record
      const route: RouteLabel = descriptor?.route.id ?? 'none'
      const scope = record.upstream?.scope ?? ''
      metrics.decided(route, outcome === 'permitted' ? outcome : outcome.reason)
      if (observed !== null) metrics.wouldRefuse(route, observed)
      for (const { answer } of descriptor?.answers ?? [])
        metrics.interruptAnswered(answer, outcome === 'permitted' ? outcome : 'refused')
      const { policy, shadow } = snapshot.prepared
      if (isKept) {
        const latency = performance.now() - head.startedAt
        write(snapshot, policy.claimPointers, {
          request: {
            id: requestId,
            client: head.address,
            transport: record.client,
            scope,
            principal,
            credential,
            descriptor,
            latency,
          },
          facts: facts ?? snapshot.factsOf(record.upstream?.key ?? ''),
          decision: { outcome, rule: record.rule, observed, hidden: record.hidden },
        })
      }
      // A decision that never reached the policy can't differ by the policy.
      if (shadow === null || descriptor === null || principal === undefined || facts === null) return
      const decided = { requestId, route, descriptor, principal, facts, outcome }
      const recordOf = (threadId: string) => snapshot.recordOf({ scope, threadId }, principal)
      setImmediate(() => void compareWithShadow({ enforced: policy.rules, shadow, recordOf, metrics, log }, decided))
    },
    takeUnreadable(requestId, client, refusal) {
      metrics.decided('none', refusal.reason)
      if (!isKept) return
      const snapshot = current()
      const nothing = {
        transport: 'multi-route',
        scope: '',
        principal: undefined,
        credential: null,
        descriptor: null,
        latency: null,
      } as const
      write(snapshot, [], {
        request: { id: requestId, client, ...nothing },
        facts: snapshot.factsOf(''),
        decision: { outcome: refusal, rule: undefined, observed: null, hidden: 0 },
      })
    },
  }
}
