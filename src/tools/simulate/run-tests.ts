/** Runs the tests of a file: compares each expectation with the gateway's decision. */
import { mountsOf, standingFacts } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import { listingFor, mayUseAgent, type Facts, type StandingFacts } from '../../core/decide/decide.ts'
import type { Principal } from '../../core/decide/principal.ts'
import { passingBody } from '../../core/route/bodies.ts'
import { CODES, refuse } from '../../core/reasons.ts'
import { ALL_ROUTES, type UpstreamApi } from '../../core/route/all-routes.ts'
import { namesAgent, type Route, type RouteId } from '../../core/route/routes.ts'
import { traceOf, type Trace } from '../../core/decide/trace.ts'
import { ruleText, triedText } from './decision-text.ts'
import { rowsOf, several, type LoadedTests } from './test-file.ts'

export interface TestResult {
  readonly name: string
  readonly line: number | undefined
  /** The expected and the actual decision, and its rule; empty if the test passes. */
  readonly failures: readonly string[]
}

type Test = LoadedTests['tests'][number]

interface TestContext extends LoadedTests {
  readonly list: (typeof LISTS)[keyof typeof LISTS]
  readonly threadAccess: StandingFacts & Pick<Facts, 'upstreamHistory'>
}

/** The list of threads of each kind of upstream, and the route by which the gateway decides which threads it has. */
const LISTS = {
  runtime: { list: 'threads/list', read: 'threads/messages' },
  agent: { list: 'threads/list', read: 'threads/messages' },
  langgraph: { list: 'langgraph/threads/search', read: 'langgraph/threads/read' },
} as const satisfies Readonly<Record<UpstreamApi, Readonly<Record<'list' | 'read', RouteId>>>>

export function runTests(loaded: LoadedTests, config: Config): readonly TestResult[] {
  const configured = standingFacts(mountsOf(config)[0], config)
  const { userScoped, unknownThread, upstreamHistory } = loaded.facts
  const threadAccess = {
    userScoped: userScoped ?? configured.userScoped,
    unknownThread: unknownThread ?? configured.unknownThread,
    enforcement: 'enforce' as const,
    upstreamHistory,
  }
  const context = { ...loaded, threadAccess, list: LISTS[mountsOf(config)[0].api] }
  return loaded.tests.map((test) => ({
    name: test.name,
    line: test.line,
    failures: several(test.as).flatMap((name) => failuresOf(test, name, context)),
  }))
}

function failuresOf(test: Test, name: string, context: TestContext): readonly string[] {
  if (test.lists !== undefined) return listFailures(test.lists, name, context)
  if (test.agents !== undefined) return agentFailures(test.agents, test.of ?? [], name, context)
  return rowsOf(test).flatMap((route) => {
    const agents = namesAgent(route) ? several(test.agent ?? 'default') : [undefined]
    const threads = route.thread === undefined ? [undefined] : several(test.thread)
    return agents.flatMap((agentId) =>
      threads.flatMap((threadId) => {
        const ids = { ...(agentId === undefined ? {} : { agentId }), ...(threadId === undefined ? {} : { threadId }) }
        const traced = trace({ outcome: 'classified', route, ids, query: [] }, name, context, test)
        const failure = against(test.expect, traced) ?? againstRoles(test.forwards, traced)
        return failure === null
          ? []
          : [`${[name, `${route.id} (${route.method})`, ...Object.values(ids)].join(', ')}: ${failure}`]
      }),
    )
  })
}

interface Traced extends Pick<Trace, 'relation'> {
  readonly decision: Trace['decision']
  readonly tried: Trace['tried']
  /** The roles of the messages that are forwarded. */
  readonly roles?: readonly string[]
}

/** A test says what else the body of its request has. */
function trace(
  descriptor: RouteDescriptor,
  name: string,
  { principals, threads, policy, threadAccess }: TestContext,
  { leaves, answers, messages }: Pick<Test, 'leaves' | 'answers' | 'messages'> = {},
): Traced {
  const principal = principals.get(name)
  if (principal === null || principal === undefined) return { decision: refuse('credential-missing'), tried: [], relation: null }
  const { threadId } = descriptor.ids
  const facts = threadId === undefined ? threadAccess : { ...threadAccess, record: threads.get(threadId) ?? null }
  const asked: RouteDescriptor = {
    ...descriptor,
    ...(leaves === true ? { leaver: principal.id } : {}),
    ...(answers === true ? { answers: [{ id: null, answer: 'answered' }] } : {}),
  }
  const traced = traceOf(asked, principal, policy.rules, facts)
  return messages === undefined ? traced : withMessages(traced, messages)
}

/** The messages of a body are examined after the decision. */
function withMessages({ decision, ...traced }: Trace, messages: NonNullable<Test['messages']>): Traced {
  if (decision.outcome !== 'permitted') return { decision, ...traced }
  const passing = passingBody(decision.descriptor.route, { messages }, decision.rule.passes)
  if (passing.outcome === 'refused') return { decision: { ...passing, rule: decision.rule }, ...traced }
  const kept = passing.body['messages'] as readonly { readonly role: string }[]
  return { decision, ...traced, roles: kept.map(({ role }) => role) }
}

function against(expect: Test['expect'], traced: Traced): string | null {
  if (expect === undefined) return null
  const wanted = typeof expect === 'string' ? { outcome: expect } : expect
  const { decision } = traced
  const refusal = decision.outcome === 'refused' ? decision : null
  const rule = decision.outcome === 'needs' ? undefined : decision.rule
  const fits =
    decision.outcome === wanted.outcome &&
    (wanted.code === undefined || wanted.code === refusal?.code) &&
    (wanted.reason === undefined || wanted.reason === refusal?.reason) &&
    (wanted.rule === undefined || wanted.rule === rule?.name)
  if (fits) return null
  const { outcome, ...more } = wanted
  const details = Object.entries(more).map(([key, value]) => `${key} ${value}`)
  return `expected ${[outcome, ...details].join(', ')}; got ${actualText(traced)}`
}

function againstRoles(expected: Test['forwards'], { roles = [] }: Traced): string | null {
  if (expected === undefined || JSON.stringify(expected) === JSON.stringify(roles)) return null
  return `expected messages of ${namesText(expected)}; forwards ${namesText(roles)}`
}

function actualText({ decision, tried, relation }: Traced): string {
  if (decision.outcome === 'needs') return `no decision: ${decision.fact} is not known`
  if (decision.outcome === 'permitted') return `permitted by ${ruleText(decision.rule)}`
  const { code, reason, rule } = decision
  const said = `refused: ${CODES[code].status} ${code} (${reason})`
  if (rule !== undefined) return `${said} by ${ruleText(rule)}`
  return tried.length === 0 ? said : `${said}; ${tried.map((one) => triedText(one, { relation })).join('; ')}`
}

function listFailures(expected: readonly string[], name: string, context: TestContext): readonly string[] {
  const { list, read } = context.list
  const refused = refusedAs(list, name, context)
  if (refused !== null) return [`${name}: expected a list of ${namesText(expected)}; got ${refused}`]
  const principal = context.principals.get(name) as Principal
  const isListed = listingFor(principal, context.policy.rules, context.threadAccess, routeOf(list))
  const listed = Array.from(context.threads)
    .filter(([id, record]) => isListed(id, record))
    .map(([id]) => id)
  const apart = [...listed.filter((id) => !expected.includes(id)), ...expected.filter((id) => !listed.includes(id))]
  if (apart.length === 0) return []
  const whys = apart.map((id) => `${id} ${actualText(trace(descriptorOf(read, id), name, context))}`)
  return [`${name}: expected a list of ${namesText(expected)}; got ${namesText(listed)}: ${whys.join('; ')}`]
}

function agentFailures(
  expected: readonly string[],
  of: readonly string[],
  name: string,
  context: TestContext,
): readonly string[] {
  const refused = refusedAs('info', name, context)
  if (refused !== null) return [`${name}: expected the agents ${namesText(expected)}; got ${refused}`]
  const principal = context.principals.get(name) as Principal
  const { rules } = context.policy
  const named = rules.nameAgents ? of.filter((agentId) => mayUseAgent(agentId, principal, rules, context.threadAccess)) : of
  if (named.length === expected.length && named.every((agentId) => expected.includes(agentId))) return []
  const all = rules.nameAgents ? '' : ': no rule of the policy names agents, so /info lists all of them'
  return [`${name}: expected the agents ${namesText(expected)}; got ${namesText(named)}${all}`]
}

function refusedAs(id: RouteId, name: string, context: TestContext): string | null {
  const traced = trace(descriptorOf(id, undefined), name, context)
  return traced.decision.outcome === 'permitted' ? null : actualText(traced)
}

function descriptorOf(id: RouteId, threadId: string | undefined): RouteDescriptor {
  return { outcome: 'classified', route: routeOf(id), ids: threadId === undefined ? {} : { threadId }, query: [] }
}

function routeOf(id: RouteId): Route {
  return ALL_ROUTES.find((row) => row.id === id) as Route
}

function namesText(names: readonly string[]): string {
  return names.length === 0 ? 'nothing' : names.join(', ')
}
