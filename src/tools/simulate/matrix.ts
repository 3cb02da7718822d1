/** Lists every request that policies could distinguish: route, agent, owner of the thread. */
import type { RouteDescriptor } from '../../core/route/classify.ts'
import type { OwnerRecord } from '../../core/decide/decide.ts'
import type { Principal } from '../../core/decide/principal.ts'
import { ALL_ROUTES } from '../../core/route/routes.ts'
import type { Rules } from '../../core/decide/rules.ts'
import type { Policy } from '../../policy/policy.ts'

// prettier-ignore
const OWNERSHIPS = [
  'own', 'shared for reading', 'shared for writing', 'unknown', 'foreign', 'own, deleted', 'foreign, deleted',
] as const

export type Ownership = (typeof OWNERSHIPS)[number]

export interface Cell {
  readonly descriptor: RouteDescriptor
  /** Null on routes without a thread. */
  readonly ownership: Ownership | null
}

/** A user id always has a colon, so this is no user. */
const SOMEBODY_ELSE = 'somebody-else'

export function recordOf(ownership: Ownership, principal: Principal): OwnerRecord {
  if (ownership === 'unknown') return null
  if (ownership === 'shared for reading') return { owner: SOMEBODY_ELSE, deleted: false, granted: 'read' }
  if (ownership === 'shared for writing') return { owner: SOMEBODY_ELSE, deleted: false, granted: 'write' }
  return { owner: ownership.startsWith('own') ? principal.id : SOMEBODY_ELSE, deleted: ownership.endsWith('deleted') }
}

/** The agents that policies name, after one agent that none of them names. */
export function agentsOf(policies: readonly Policy[]): readonly [string, ...string[]] {
  const named = new Set<string>()
  for (const { rules } of policies) {
    for (const { rules: list } of Object.values(rules.routes))
      for (const { agents } of list) for (const agent of agents ?? []) named.add(agent)
  }
  const taken = [...named]
  const other = ['any-other-agent', ...taken.map((_one, at) => `any-other-agent-${at}`)].find((one) => !named.has(one))
  return [other ?? 'any-other-agent', ...taken]
}

/** True for a thread with a grant. Where grants do not count, it is like any other foreign thread. */
function isShared(ownership: Ownership): boolean {
  return ownership === 'shared for reading' || ownership === 'shared for writing'
}

export function cellsOf(agents: readonly string[], { sharing }: Pick<Rules, 'sharing'>): readonly Cell[] {
  const ownerships = sharing ? OWNERSHIPS : OWNERSHIPS.filter((one) => !isShared(one))
  return ALL_ROUTES.flatMap((route) => {
    const named = route.path.includes(':agentId') ? agents : [undefined]
    return named.flatMap((agentId) => {
      const ids = {
        ...(agentId === undefined ? {} : { agentId }),
        ...(route.thread === undefined ? {} : { threadId: 'a-thread' }),
      }
      const descriptor = { outcome: 'classified', route, ids, query: [] } as const
      return (route.thread === undefined ? [null] : ownerships).map((ownership) => ({ descriptor, ownership }))
    })
  })
}
