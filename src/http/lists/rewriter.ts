/** Rewrites the answers that do not pass unchanged: lists, /info, and changes of threads that are listed from the table. */
import { mayUseAgent, type StandingFacts } from '../../core/decide/decide.ts'
import type { Route } from '../../core/route/routes.ts'
import type { Rules } from '../../core/decide/rules.ts'
import { isTableRoute, type TableUse } from '../../core/wire/table-lists.ts'
import { isBridged, type RuntimeFacts } from '../../core/route/transport.ts'
import type { AnswerMemory } from './answer-memory.ts'
import type { ClientDisconnect } from '../pipeline/client-disconnect.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Forwarder } from '../upstream/forward.ts'
import type { Granted } from '../pipeline/permit.ts'
import type { Rewritten } from './rewriting.ts'
import { infoFor } from './runtime-info.ts'
import { isGuests, type TableChange } from './table-changes.ts'
import { listFrom, type TableList } from './table-list.ts'
import type { ThreadList } from './thread-list.ts'

export interface RewriterParts {
  readonly rules: Rules
  readonly facts: StandingFacts
  readonly forwarder: Forwarder
  readonly list: ThreadList
  readonly tableList: TableList
  readonly tableChange: TableChange
  readonly tableUse: (upstream: RuntimeFacts) => TableUse
}

export interface Rewriter {
  /** True for what the table answers, also where the upstream lacks the operation. */
  hasOperation(upstream: RuntimeFacts, route: Route): boolean
  /**
   * Answers a permitted request; null where the upstream's answer passes unchanged.
   * @param memory for what the answer takes; the caller of this function releases it
   */
  rewrite(
    granted: Pick<Granted, 'permit' | 'payload'>,
    exchange: Exchange,
    upstream: RuntimeFacts,
    signal: ClientDisconnect,
    memory: AnswerMemory,
  ): Promise<Rewritten | null>
}

export function makeRewriter({ rules, facts, forwarder, list, tableList, tableChange, tableUse }: RewriterParts): Rewriter {
  return {
    hasOperation: (upstream, route) => isTableRoute(route) && tableUse(upstream) === 'always',
    rewrite: async ({ permit, payload }, exchange, upstream, signal, memory) => {
      const { route } = permit.descriptor
      const use = tableUse(upstream)
      if (route.id === 'threads/list') return listFrom(use, tableList, list, permit, exchange, signal, memory)
      if (isTableRoute(route)) {
        const passes = use === 'never' && !isGuests(permit)
        return passes ? null : tableChange(permit, payload, exchange, upstream, signal, use)
      }
      const bridged = isBridged(upstream, exchange.client)
      if (route.id !== 'info' || !(bridged || rules.nameAgents || use !== 'never')) return null
      const mayUse = rules.nameAgents ? (agentId: string): boolean => mayUseAgent(agentId, permit.principal, rules, facts) : null
      return infoFor(forwarder, permit, exchange, { bridged, mayUse, use }, signal, memory)
    },
  }
}
