/** Answers /info: the upstream's description, with the agents that the caller may use and what works for this client. */
import { isObject, type JsonObject } from '../../core/json/read.ts'
import { refuse } from '../../core/reasons.ts'
import { tellsOfTable, withTableLists, type TableUse } from '../../core/wire/table-lists.ts'
import { infoFor as infoOfOther } from '../../core/route/transport.ts'
import type { AnswerMemory } from './answer-memory.ts'
import type { Forwarder } from '../upstream/forward.ts'
import { readAnswer, writtenAnew, type Rewritten } from './rewriting.ts'
import type { Authorized } from '../pipeline/stages.ts'

const MAX_INFO_BYTES = 256 * 1024

export interface InfoRules {
  readonly bridged: boolean
  readonly mayUse: ((agentId: string) => boolean) | null
  readonly use: TableUse
}

export async function infoFor(
  forwarder: Forwarder,
  request: Authorized,
  { bridged, mayUse, use }: InfoRules,
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

function withAgents(info: JsonObject, mayUse: (agentId: string) => boolean): JsonObject {
  const agents = info['agents']
  // An answer without a map of agents cannot be checked against the policy.
  const usable = isObject(agents) ? Object.entries(agents).filter(([agentId]) => mayUse(agentId)) : []
  return { ...info, agents: Object.fromEntries(usable) }
}
