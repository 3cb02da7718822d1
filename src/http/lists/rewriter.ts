/** Rewrites the answers that do not pass unchanged: lists, /info, and changes of threads that are listed from the table. */
import { mayUseAgent, type StandingFacts } from '../../core/decide/decide.ts'
import type { Route } from '../../core/route/routes.ts'
import type { Rules } from '../../core/decide/rules.ts'
import { isTableRoute, type TableUse, tellsOfTable, withTableLists } from '../../core/wire/table-lists.ts'
import { isBridged, type RuntimeFacts, infoFor as infoOfOther } from '../../core/route/transport.ts'
import type { AnswerMemory } from './answer-memory.ts'
import type { Forwarder } from '../upstream/forward.ts'
import { type Rewritten, readAnswer, writtenAnew } from './rewriting.ts'
import { isOfOtherOwner, type TableChange } from './table-changes.ts'
import { listFrom, type TableList } from './table-list.ts'
import type { ThreadList } from './thread-list.ts'
import type { Authorized } from '../pipeline/stages.ts'
import { isObject, type JsonObject } from '../../core/json/read.ts'
import { refuse } from '../../core/reasons.ts'

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

const MAX_INFO_BYTES = 256 * 1024

async function infoFor(
  forwarder: Forwarder,
  request: Authorized,
  { bridged, mayUse, use }: { readonly bridged: boolean; readonly mayUse: MayUse | null; readonly use: TableUse },
  memory: AnswerMemory,
): Promise<Rewritten> {
  const answer = await forwarder.ask(request)
  // Other upstream answers pass unchanged, unless they could reveal agents that the caller may not use.
  if (mayUse === null && answer.outcome === 'answered' && answer.status !== 200) return { outcome: 'passthrough', answer }
  const read = await readAnswer(answer, MAX_INFO_BYTES, 'upstream-answer-unreadable', memory)
  if (read.outcome !== 'read') return read
  if (!isObject(read.value)) return refuse('upstream-answer-unreadable')
  const { client } = request.exchange.record
  const info = mayUse === null ? read.value : withAgents(read.value, mayUse)
  const bridgedInfo = bridged ? infoOfOther(client, info) : info
  const whole = tellsOfTable(use, read.value) ? withTableLists(client, bridgedInfo) : bridgedInfo
  return writtenAnew(whole, 'upstream-answer-unreadable')
}

type MayUse = (agentId: string) => boolean

function withAgents(info: JsonObject, mayUse: MayUse): JsonObject {
  const agents = info['agents']
  // An answer without a map of agents cannot be checked against the policy.
  const usable = isObject(agents) ? Object.entries(agents).filter(([agentId]) => mayUse(agentId)) : []
  return { ...info, agents: Object.fromEntries(usable) }
}
