/** A request of Alice to the gateway before a LangGraph server, as plain data. */
import { ROUTES_OF } from '../../../src/core/route/all-routes.ts'
import { caseSource } from '../case.ts'
import type { Subject } from '../tally.ts'

/** `open`: as open as a policy may be. `default`: the one that is shipped. */
export const POLICIES = ['default', 'open'] as const

export type PolicyName = (typeof POLICIES)[number]

export interface LangGraphCase {
  readonly policy: PolicyName
  readonly method: string
  /** As it stands in the request line. */
  readonly target: string
  /** Without those that say how long the body is. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** A character for each byte; null for none at all. */
  readonly body: string | null
  readonly chunked: boolean
}

const USUAL = {
  policy: 'open',
  method: 'POST',
  headers: [
    ['host', 'gateway.example'],
    ['content-type', 'application/json'],
  ],
  body: null,
  chunked: false,
} as const

/** A case of its target and what is unusual about it. */
export function langGraphCase(unusual: Partial<LangGraphCase> & Pick<LangGraphCase, 'target'>): LangGraphCase {
  return { ...USUAL, ...unusual }
}

/** Where callers find the server. */
export const PUBLIC_PATH = '/graphs'

export const LANGGRAPH: Subject<LangGraphCase> = {
  file: 'test/fuzz/langgraph-cases.test.ts',
  source: (one) => caseSource('langGraphCase', one, USUAL),
  routes: ROUTES_OF.langgraph.map(({ id }) => id),
  groups: { title: 'policy', names: POLICIES },
  averted: 'of which the server would have accessed something of another user',
}
