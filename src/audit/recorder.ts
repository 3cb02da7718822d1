/** Decision recorder: counts each decision, writes it to the audit, and compares it with the shadow policy. */
import type { GateParts } from '../http/pipeline/gate.ts'
import type { AppParts } from '../http/listeners/app.ts'
import type { ConfigSnapshot, Shared } from '../snapshot/snapshot.ts'
import { auditLine } from './line.ts'
import type { Audit } from './sinks.ts'
import { compareWithShadow } from './shadow.ts'

export interface DecisionRecorderParts extends Pick<Shared, 'metrics' | 'log' | 'clock'> {
  readonly audit: Audit
  readonly current: () => ConfigSnapshot
  /** Milliseconds of the clock that requests are timed by. */
  readonly now: () => number
}

export interface DecisionRecorder {
  readonly take: (generation: ConfigSnapshot, ...decision: Parameters<GateParts['onDecision']>) => void
  readonly takeUnreadable: AppParts['onUnreadable']
}

export function makeDecisionRecorder(parts: DecisionRecorderParts): DecisionRecorder {
  const { metrics, audit, log, clock } = parts
  return {
    take(generation, exchange, outcome) {
      const { id: requestId, route, descriptor, principal, observed } = exchange
      metrics.decided(route, outcome === 'permitted' ? outcome : outcome.reason)
      if (observed !== null) metrics.wouldRefuse(route, observed)
      const { policy, shadow } = generation.prepared
      if (audit.isOn) {
        audit.write(
          auditLine({
            time: clock(),
            requestId,
            client: exchange.address,
            transport: exchange.client,
            scope: exchange.scope,
            principal,
            claimPointers: policy.claimPointers,
            descriptor,
            facts: exchange.facts ?? generation.factsOf(exchange.upstreamKey),
            outcome,
            rule: exchange.rule,
            observed,
            hidden: exchange.hidden,
            policy: policy.hash,
            generation: generation.number,
            latency: parts.now() - exchange.startedAt,
          }),
        )
      }
      const { facts, scope } = exchange
      // A decision that never reached the policy can't differ by the policy.
      if (shadow === null || descriptor === null || principal === undefined || facts === null) return
      const decided = { requestId, route, descriptor, principal, facts, outcome }
      setImmediate(
        () =>
          void compareWithShadow(
            {
              enforced: policy.rules,
              shadow,
              recordOf: (threadId) => generation.recordOf({ scope, threadId }, principal),
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
          requestId,
          client: address,
          transport: 'multi-route',
          scope: '',
          principal: undefined,
          claimPointers: [],
          descriptor: null,
          facts: current.factsOf(''),
          outcome: refusal,
          rule: undefined,
          observed: null,
          hidden: 0,
          policy: prepared.policy.hash,
          generation: number,
          latency: null,
        }),
      )
    },
  }
}
