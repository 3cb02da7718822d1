/** Compiles a policy file into the rules that the core decides by. */
import { createHash } from 'node:crypto'
import { claimPointersOf } from '../core/decide/claim-values.ts'
import type { ClaimTest, CallerConditions, OperatorSelector, Passes, RouteRules, Rule, Rules } from '../core/decide/rules.ts'
import type { BodyPolicy } from '../core/route/bodies.ts'
import type { LangGraphRules } from '../core/route/langgraph-bodies.ts'
import type { MessageRules } from '../core/route/message-rules.ts'
import { ROUTE_IDS } from '../core/route/all-routes.ts'
import type { RouteId } from '../core/route/routes.ts'
import {
  faultsFound,
  parseDocumentAs,
  readDocument,
  type Outcome,
  type Place,
  type SourceDocument,
} from '../document/document.ts'
import type { Fault } from '../document/fault.ts'
import type { Sources } from '../document/sources.ts'
import { checkRules, type PolicySurroundings } from './faults.ts'
import { policySchema, type PolicyFile, type RuleOfFile } from './schema.ts'
import { checkForWarnings } from './warnings.ts'

export interface LoadedPolicy {
  readonly policy: Policy
  readonly warnings: readonly Fault[]
}

/** @param namedAt where the configuration names the file */
export function loadPolicy(
  sources: Sources,
  file: string,
  surroundings: PolicySurroundings,
  namedAt?: Place,
): Outcome<LoadedPolicy> {
  const read = readDocument(sources, file, namedAt)
  if (!read.ok) return read
  const parsed = parseDocumentAs(read.value, policySchema)
  if (!parsed.ok) return parsed
  const faults = faultsFound(read.value, (report) => checkRules(parsed.value, surroundings, report))
  if (faults.length > 0) return { ok: false, faults }
  const bodies = bodiesOf(parsed.value)
  const rules = parsed.value.rules.map((rule, at) =>
    compileRule(read.value, rule, at, { ...bodies, interrupts: parsed.value.interrupts }),
  )
  const policy = compile(read.value, parsed.value, rules, bodies, surroundings.issuers)
  const { operators } = policy.rules
  const warnings = faultsFound(read.value, (warn) => checkForWarnings(parsed.value, rules, operators, surroundings, warn))
  return { ok: true, value: { policy, warnings } }
}

function bodiesOf({ forwardedProps, state, tools, messages, langgraph }: PolicyFile): BodyPolicy {
  const names = new Set(forwardedProps.map((prop) => prop.name))
  return {
    forwardedProps: names,
    state,
    tools: toolNames(tools),
    messages: messageRules(messages),
    langgraph: langGraphRules(langgraph),
  }
}

function compile(
  document: SourceDocument,
  file: PolicyFile,
  rules: readonly Rule[],
  bodies: BodyPolicy,
  issuers: readonly string[],
): Policy {
  const routes = Object.fromEntries(ROUTE_IDS.map((id) => [id, routeRules(file, rules, id)])) as Record<RouteId, RouteRules>
  const operators = file.operators.flatMap((selector): OperatorSelector[] => {
    const issuer = selector.issuer ?? issuers[0]
    return issuer === undefined ? [] : [{ ...defined({ role: selector.role, permission: selector.permission }), issuer }]
  })
  return {
    file: document.file,
    hash: createHash('sha256').update(document.text).digest('hex'),
    rules: { operators, routes, nameAgents: rules.some((rule) => rule.agents !== null), sharing: file.sharing },
    claimPointers: claimPointersOf({ routes }),
    bodies,
  }
}

function routeRules(file: PolicyFile, rules: readonly Rule[], id: RouteId): RouteRules {
  const speaking = rules.filter((_rule, at) => speaksOf(file.rules[at], id))
  return {
    // A rule that allows no caller has no effect; the file keeps it for readers.
    rules: speaking.filter((rule) => rule.who.length > 0),
    hide: speaking.some((rule) => rule.effect === 'allow' && rule.hides),
  }
}

function speaksOf(rule: RuleOfFile | undefined, id: RouteId): boolean {
  return rule?.routes === 'all' || rule?.routes.includes(id) === true
}

function compileRule(document: SourceDocument, rule: RuleOfFile, at: number, usual: UsualPasses): Rule {
  const line = document.lineOf(['rules', at])
  return {
    name: rule.name ?? `rule ${at + 1}`,
    file: document.file,
    ...(line === undefined ? {} : { line }),
    effect: rule.deny === undefined ? 'allow' : 'deny',
    who: rule.deny ?? rule.allow ?? [],
    when: conditionsOf(rule),
    unless: rule.unless === undefined ? null : conditionsOf(rule.unless),
    agents: rule.agents === undefined ? null : new Set(rule.agents),
    methods: rule.methods ?? null,
    threads: rule.threads ?? null,
    onlyUserScoped: rule.only === 'user-scoped',
    hides: rule.refusal === 404,
    passes: passesOf(rule, usual),
    limits: defined(rule.limits ?? {}),
  }
}

/** What a rule passes that does not say otherwise. */
type UsualPasses = Omit<Passes, 'headers'>

function passesOf(rule: RuleOfFile, usual: UsualPasses): Passes {
  return {
    forwardedProps:
      rule.forwardedProps === undefined ? usual.forwardedProps : new Set(rule.forwardedProps.map((prop) => prop.name)),
    state: rule.state ?? usual.state,
    tools: rule.tools === undefined ? usual.tools : toolNames(rule.tools),
    messages: rule.messages === undefined ? usual.messages : messageRules(rule.messages),
    langgraph: rule.langgraph === undefined ? usual.langgraph : langGraphRules(rule.langgraph),
    interrupts: rule.interrupts ?? usual.interrupts,
    headers: rule.headers === undefined ? null : new Set(rule.headers.map((name) => name.toLowerCase())),
  }
}

function toolNames(tools: PolicyFile['tools']): BodyPolicy['tools'] {
  return tools === 'pass' ? 'all' : new Set(tools === 'drop' ? [] : tools)
}

function messageRules({ roles, media, schemes, ...rest }: PolicyFile['messages']): MessageRules {
  return {
    ...rest,
    roles: new Set(roles),
    media: media === 'all' ? 'all' : new Set(media),
    schemes: schemes === 'all' ? 'all' : new Set(schemes),
  }
}

function langGraphRules({ options, command, configurable, input }: PolicyFile['langgraph']): LangGraphRules {
  return {
    options: new Set(options),
    command: new Set(command),
    configurable: new Set(configurable),
    input: input === 'all' ? 'all' : new Set(input),
  }
}

type ConditionsOfFile = Pick<RuleOfFile, 'issuers' | 'roles' | 'permissions' | 'claims'>

function conditionsOf({ issuers, roles, permissions, claims }: ConditionsOfFile): CallerConditions {
  return defined({
    issuers,
    roles,
    permissions: permissions === undefined ? undefined : defined(permissions),
    claims: claims?.map(claimTest),
  })
}

type ClaimOfFile = NonNullable<RuleOfFile['claims']>[number]

function claimTest({ at, equals, in: list, contains, atLeast, atMost, exists }: ClaimOfFile): ClaimTest {
  if (equals !== undefined) return { at, is: 'equal', to: equals }
  if (list !== undefined) return { at, is: 'in', list }
  if (contains !== undefined) return { at, is: 'containing', item: contains }
  if (atLeast !== undefined) return { at, is: 'at-least', bound: atLeast }
  if (atMost !== undefined) return { at, is: 'at-most', bound: atMost }
  return { at, is: 'present', wanted: exists ?? true }
}

function defined<T extends object>(value: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
}

export interface Policy {
  readonly file: string
  /** SHA-256 of the file, in hexadecimal digits: two policies with the same hash decide alike. */
  readonly hash: string
  readonly rules: Rules
  /** The claims that its rules compare, as JSON pointers. */
  readonly claimPointers: readonly string[]
  /** The body fields that are forwarded unless a rule says otherwise. */
  readonly bodies: BodyPolicy
}
