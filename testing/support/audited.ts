/** A decision for the audit, from its parts in one object. */
import type { AuditedConfiguration, AuditedDecision, AuditedOutcome, AuditedRequest } from '../../src/audit/line.ts'
import { user } from './callers.ts'
import { compiled, descriptor, SHIPPED } from './policies.ts'

export type FlatDecision = Pick<AuditedDecision, 'time' | 'facts'> & AuditedRequest & AuditedOutcome & AuditedConfiguration

/** Alice reads the messages of her thread. */
export const READING: FlatDecision = {
  time: 0,
  id: 'r-1',
  client: '127.0.0.1',
  transport: 'multi-route',
  scope: '',
  principal: user('alice'),
  credential: 'header',
  claimPointers: [],
  descriptor: descriptor('GET', 'threads/t-1/messages'),
  facts: { userScoped: false, unknownThread: 'claim', enforcement: 'enforce', record: { owner: 'corp:alice', deleted: false } },
  outcome: 'permitted',
  rule: undefined,
  observed: null,
  hidden: 0,
  policy: compiled(SHIPPED).hash,
  generation: 1,
  latency: 1,
}

export function audited({
  time,
  facts,
  outcome,
  rule,
  observed,
  hidden,
  policy,
  claimPointers,
  generation,
  ...request
}: FlatDecision): AuditedDecision {
  const decision = { outcome, rule, observed, hidden }
  return { time, request, facts, decision, configuration: { policy, claimPointers, generation } }
}
