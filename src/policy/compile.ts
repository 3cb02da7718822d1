/** Compiles a policy file into the rules that the core decides by, and refuses what would open more than it says. */
import type { BodyPolicy } from '../core/bodies.ts'
import type { Grant, OperatorSelector, RouteRules, Rules } from '../core/decide.ts'
import { isUnsafeProp } from '../core/forwarded-props.ts'
import { ROUTE_IDS, ROUTES, type RouteId } from '../core/routes.ts'
import { faultAt, parseDocumentAs, readDocument, type Outcome, type SourceDocument } from '../document/document.ts'
import type { Fault } from '../document/fault.ts'
import { policySchema, type PolicyFile } from './schema.ts'

/** A policy in force. */
export interface Policy {
  readonly rules: Rules
  readonly bodies: BodyPolicy
}

/** A policy that may be served, and what an operator should know of it all the same. */
export interface LoadedPolicy {
  readonly policy: Policy
  readonly warnings: readonly Fault[]
}

const THREAD_ROUTES: ReadonlySet<RouteId> = new Set(ROUTES.filter((row) => row.thread !== undefined).map((row) => row.id))
const NEW_THREAD_ROUTES: ReadonlySet<RouteId> = new Set(['agent/run', 'agent/connect', 'agent/suggest'])
/** Routes that reach across all users at once. */
const EVERYBODYS_ROUTES: ReadonlySet<RouteId> = new Set(['threads/clear', 'cpk-debug-events'])

/**
 * Loads a policy file.
 * @param file its path
 * @param issuers the keys of the configured issuers
 */
export function loadPolicy(file: string, issuers: readonly string[]): Outcome<LoadedPolicy> {
  const read = readDocument(file)
  if (!read.ok) return read
  const parsed = parseDocumentAs(read.value, policySchema)
  if (!parsed.ok) return parsed
  const faults = [
    ...ruleFaults(read.value, parsed.value),
    ...issuerFaults(read.value, parsed.value, issuers),
    ...operatorFaults(read.value, parsed.value, issuers),
    ...propFaults(read.value, parsed.value),
  ]
  if (faults.length > 0) return { ok: false, faults }
  return { ok: true, value: { policy: compile(parsed.value, issuers), warnings: propWarnings(read.value, parsed.value) } }
}

function compile(file: PolicyFile, issuers: readonly string[]): Policy {
  const routes = Object.fromEntries(ROUTE_IDS.map((id) => [id, routeRules(file, id)])) as Record<RouteId, RouteRules>
  const operators = file.operators.flatMap((selector): OperatorSelector[] => {
    const issuer = selector.issuer ?? issuers[0]
    return issuer === undefined ? [] : [{ ...defined({ role: selector.role, permission: selector.permission }), issuer }]
  })
  return {
    rules: { operators, routes },
    bodies: {
      forwardedProps: new Set(file.forwardedProps.map((prop) => prop.name)),
      state: file.state,
      tools: toolNames(file.tools),
    },
  }
}

function toolNames(tools: PolicyFile['tools']): BodyPolicy['tools'] {
  return tools === 'pass' ? 'all' : new Set(tools === 'drop' ? [] : tools)
}

function routeRules(file: PolicyFile, id: RouteId): RouteRules {
  const rules = file.rules.filter((rule) => rule.routes.includes(id))
  const grants = rules
    .filter((rule) => rule.allow.length > 0)
    .map((rule): Grant => ({
      who: rule.allow,
      ...(rule.issuers === undefined ? {} : { issuers: rule.issuers }),
      threads: rule.threads ?? [],
      onlyUserScoped: rule.only === 'user-scoped',
    }))
  return { grants, hide: rules.some((rule) => rule.refusal === 404) }
}

function ruleFaults(document: SourceDocument, file: PolicyFile): readonly Fault[] {
  return file.rules.flatMap((rule, at) => {
    const faults: Fault[] = []
    const fault = (key: string, message: string, hint: string): void =>
      void faults.push(faultAt(document, ['rules', at, key], message, hint))
    const only = (allowed: readonly string[]): boolean => rule.allow.every((who) => allowed.includes(who))
    for (const id of rule.routes) {
      if (THREAD_ROUTES.has(id) && rule.threads === undefined && rule.allow.length > 0) {
        fault('routes', `${id} is about a thread, and the rule does not say which`, 'add threads: [own]')
      }
      if (!THREAD_ROUTES.has(id) && rule.threads !== undefined)
        fault('threads', `${id} is about no thread`, 'give it a rule of its own')
      if (rule.threads?.includes('unknown') === true && !NEW_THREAD_ROUTES.has(id)) {
        fault('threads', `${id} cannot be opened for threads without an owner`, `only ${[...NEW_THREAD_ROUTES].join(', ')}`)
      }
      if (EVERYBODYS_ROUTES.has(id) && !only(['operator']))
        fault('allow', `${id} reaches every user's threads`, 'it can be opened to operators alone')
      if (id === 'threads/list' && rule.allow.includes('anonymous')) {
        fault(
          'allow',
          'threads/list cannot be opened to anonymous',
          "all anonymous callers are one owner: each would see the others' threads",
        )
      }
    }
    if (rule.threads?.includes('foreign') === true && !only(['operator'])) {
      fault('threads', 'foreign threads can be opened to operators alone', 'give operators a rule of their own')
    }
    return faults
  })
}

function issuerFaults(document: SourceDocument, file: PolicyFile, issuers: readonly string[]): readonly Fault[] {
  return file.rules.flatMap((rule, at) => {
    const named = rule.issuers ?? []
    const path = ['rules', at, 'issuers']
    const unknown = named.filter((issuer) => !issuers.includes(issuer))
    return [
      ...unknown.map((issuer) => faultAt(document, path, `no issuer is called ${issuer}`, `configured: ${issuers.join(', ')}`)),
      ...(named.length > 0 && rule.allow.includes('anonymous')
        ? [faultAt(document, path, 'anonymous callers come from no issuer', 'give them a rule of their own')]
        : []),
    ]
  })
}

function operatorFaults(document: SourceDocument, file: PolicyFile, issuers: readonly string[]): readonly Fault[] {
  return file.operators.flatMap((selector, at) => {
    if (selector.issuer === undefined) {
      if (issuers.length < 2) return []
      return [
        faultAt(document, ['operators', at], 'does not say which issuer it speaks of', `add issuer: ${issuers.join(' or ')}`),
      ]
    }
    if (issuers.includes(selector.issuer)) return []
    return [
      faultAt(
        document,
        ['operators', at, 'issuer'],
        `no issuer is called ${selector.issuer}`,
        `configured: ${issuers.join(', ')}`,
      ),
    ]
  })
}

function propFaults(document: SourceDocument, file: PolicyFile): readonly Fault[] {
  return file.forwardedProps.flatMap((prop, at) =>
    isUnsafeProp(prop.name) && !prop.unsafe
      ? [
          faultAt(
            document,
            ['forwardedProps', at, 'name'],
            `${prop.name} reaches the agent's configuration, identity or storage`,
            'write unsafe: true beside it if that is what you want',
          ),
        ]
      : [],
  )
}

function propWarnings(document: SourceDocument, file: PolicyFile): readonly Fault[] {
  return file.forwardedProps.flatMap((prop, at) =>
    isUnsafeProp(prop.name)
      ? [faultAt(document, ['forwardedProps', at, 'name'], `${prop.name} is unsafe: callers choose what reaches the agent`)]
      : [],
  )
}

function defined<T extends object>(value: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
}
