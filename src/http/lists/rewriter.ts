/** Rewrites the answers that do not pass unchanged: lists, /info, and changes of threads that are listed from the table. */
import { mayUseAgent, type StandingFacts } from '../../core/decide/decide.ts'
import type { Route } from '../../core/route/routes.ts'
import type { Rules } from '../../core/decide/rules.ts'
import { isTableRoute, type TableUse } from '../../core/wire/table-lists.ts'
import { isBridged, type RuntimeFacts } from '../../core/route/transport.ts'
import type { AnswerMemory } from './answer-memory.ts'
import type { Forwarder } from '../upstream/forward.ts'
import type { Rewritten } from './rewriting.ts'
import { infoFor } from './runtime-info.ts'
import { isOfOtherOwner, type TableChange } from './table-changes.ts'
import { listFrom, type TableList } from './table-list.ts'
import type { ThreadList } from './thread-list.ts'
import type { Authorized } from '../pipeline/stages.ts'

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
  readonly hasOperation: (upstream: RuntimeFacts, route: Route) => boolean
  rewrites(request: Authorized): boolean
  /** Its caller releases `memory`. */
  rewrite(request: Authorized, memory: AnswerMemory): Promise<Rewritten>
}

export function makeRewriter({ rules, facts, forwarder, list, tableList, tableChange, tableUse }: RewriterParts): Rewriter {
  const isOfOtherTransport = ({ upstream, exchange }: Authorized): boolean => isBridged(upstream, exchange.record.client)
  return {
    hasOperation: (upstream, route) => isTableRoute(route) && tableUse(upstream) === 'always',
    rewrites(request) {
      const { route } = request.permit.descriptor
      if (route.id === 'threads/list') return true
      if (isTableRoute(route)) return tableUse(request.upstream) !== 'never' || isOfOtherOwner(request.permit)
      if (route.id !== 'info') return false
      return isOfOtherTransport(request) || rules.nameAgents || tableUse(request.upstream) !== 'never'
    },
    async rewrite(request, memory) {
      const { route } = request.permit.descriptor
      const use = tableUse(request.upstream)
      if (route.id === 'threads/list') return listFrom(use, tableList, list, request, memory)
      if (isTableRoute(route)) return tableChange(request, use)
      const { principal } = request.permit
      const mayUse = rules.nameAgents ? (agentId: string): boolean => mayUseAgent(agentId, principal, rules, facts) : null
      return infoFor(forwarder, request, { bridged: isOfOtherTransport(request), mayUse, use }, memory)
    },
  }
}
