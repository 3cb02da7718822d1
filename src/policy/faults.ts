/** Errors of a policy that its schema cannot find: rules that would open more than they say, or have no meaning. */
import { isUnsafeProp } from '../core/route/forwarded-props.ts'
import { ALL_ROUTES, type UpstreamApi } from '../core/route/all-routes.ts'
import { namesAgent, type RouteId } from '../core/route/routes.ts'
import type { Report } from '../document/document.ts'
import { unknownGroup } from '../document/limits.ts'
import type { PolicyFile, RuleOfFile } from './schema.ts'

export interface PolicySurroundings {
  readonly issuers: readonly string[]
  /** The caller headers that the configuration forwards; none by default. */
  readonly forwardHeaders?: readonly string[]
  /** The kinds of the configured upstreams; by default all kinds. */
  readonly apis?: readonly UpstreamApi[]
  /** By default `required`. */
  readonly mode?: 'required' | 'optional' | 'off'
}

const THREAD_ROUTES: ReadonlySet<RouteId> = new Set(ALL_ROUTES.filter((row) => row.thread !== undefined).map((row) => row.id))
const AGENT_ROUTES: ReadonlySet<RouteId> = new Set(ALL_ROUTES.filter(namesAgent).map(({ id }) => id))
const NEW_THREAD_ROUTES: ReadonlySet<RouteId> = new Set(
  ALL_ROUTES.filter(({ unknownThread }) => unknownThread !== undefined).map(({ id }) => id),
)
/** Lists of the caller's threads. */
const LIST_ROUTES: ReadonlySet<RouteId> = new Set(['threads/list', 'langgraph/threads/search', 'langgraph/threads/count'])
/** Routes that affect all users at once. */
const EVERYBODYS_ROUTES: ReadonlySet<RouteId> = new Set(['threads/clear', 'cpk-debug-events'])

export function checkRules(file: PolicyFile, { issuers, forwardHeaders = [] }: PolicySurroundings, report: Report): void {
  const known = forwardHeaders.map((name) => name.toLowerCase())
  for (const [at, rule] of file.rules.entries()) {
    const fault: Say = (key, message, hint) => report(['rules', at, key], message, hint)
    routeFaults(rule, fault)
    if (rule.deny === undefined) allowFaults(rule, fault)
    else denyFaults(rule, fault)
    callerFaults(rule, issuers, fault)
    for (const limit of Object.values(rule.limits ?? {})) {
      const group = unknownGroup(limit, issuers)
      if (group !== null) fault('limits', `${group} is a group of no configured issuer`, `configured: ${issuers.join(', ')}`)
    }
    for (const name of rule.headers ?? []) {
      if (!known.includes(name.toLowerCase())) fault('headers', `${name} is not in forwardHeaders`, 'add it there, or remove it')
    }
    checkProps(['rules', at, 'forwardedProps'], rule.forwardedProps ?? [], report)
  }
  for (const [at, { name }] of file.rules.entries()) {
    if (name !== undefined && file.rules.findIndex((other) => other.name === name) < at)
      report(['rules', at, 'name'], `${name} is also the name of another rule`, 'give each rule its own name')
  }
  for (const [at, { issuer }] of file.operators.entries()) {
    if (issuer === undefined && issuers.length > 1)
      report(['operators', at], 'does not name its issuer', `add issuer: ${issuers.join(' or ')}`)
    if (issuer !== undefined && !issuers.includes(issuer))
      report(['operators', at, 'issuer'], `there is no issuer ${issuer}`, `configured: ${issuers.join(', ')}`)
  }
  checkProps(['forwardedProps'], file.forwardedProps, report)
}

type Say = (key: string, message: string, hint?: string) => void

function routeFaults(rule: RuleOfFile, fault: Say): void {
  if (rule.routes === 'all') {
    if (rule.threads !== undefined) fault('threads', 'all includes routes without a thread', 'name the routes')
    if (rule.agents !== undefined) fault('agents', 'all includes routes without an agent', 'name the routes')
    return
  }
  for (const id of rule.routes) {
    if (rule.threads !== undefined && !THREAD_ROUTES.has(id)) fault('threads', `${id} has no thread`, 'give it a separate rule')
    if (rule.agents !== undefined && !AGENT_ROUTES.has(id))
      fault('agents', `${id} has no agent`, `only ${[...AGENT_ROUTES].join(', ')}`)
    const rows = ALL_ROUTES.filter((row) => row.id === id)
    const taken = rows.map(({ method }) => method)
    const meant = rows.filter(({ method }) => rule.methods?.includes(method) !== false)
    const shared = rule.threads?.includes('shared') === true && THREAD_ROUTES.has(id)
    if (shared && meant.length > 0 && meant.every(({ right, leave }) => right === 'owner' && leave !== true))
      fault('threads', `${id} is for the owner only: grants never cover it`, 'give it a separate rule without shared')
    if (rule.methods !== undefined && !taken.some((method) => rule.methods?.includes(method))) {
      fault('methods', `${id} has none of these methods`, `it has ${taken.join(', ')}; or give it a separate rule`)
    }
  }
}

function allowFaults(rule: RuleOfFile, fault: Say): void {
  const allow = rule.allow ?? []
  if (rule.routes === 'all') {
    fault('routes', 'all is for deny rules only', 'name the routes to allow')
    return
  }
  const only = (allowed: readonly string[]): boolean => allow.every((who) => allowed.includes(who))
  for (const id of rule.routes) {
    if (THREAD_ROUTES.has(id) && rule.threads === undefined && allow.length > 0) {
      fault('routes', `${id} has a thread, but the rule names no threads`, 'add threads: [own]')
    }
    if (rule.threads?.includes('unknown') === true && !NEW_THREAD_ROUTES.has(id)) {
      fault('threads', `${id} cannot be allowed for threads without an owner`, `only ${[...NEW_THREAD_ROUTES].join(', ')}`)
    }
    if (id === 'threads/grants' && allow.includes('anonymous')) {
      const hint = "all anonymous callers are one owner: each could give away the others' threads"
      fault('allow', 'threads/grants cannot be allowed to anonymous', hint)
    }
    if (EVERYBODYS_ROUTES.has(id) && !only(['operator']))
      fault('allow', `${id} reaches the threads of all users`, 'allow it to operators only')
    if (LIST_ROUTES.has(id) && allow.includes('anonymous')) {
      const hint = "all anonymous callers are one owner: each would see the others' threads"
      fault('allow', `${id} cannot be allowed to anonymous`, hint)
    }
  }
  if (rule.threads?.includes('foreign') === true && !only(['operator'])) {
    fault('threads', 'foreign threads can be allowed to operators only', 'give operators a separate rule')
  }
}

function denyFaults(rule: RuleOfFile, fault: Say): void {
  const relations = (['foreign', 'unknown'] as const).filter((relation) => rule.threads?.includes(relation))
  if (rule.refusal === 404 && relations.length === 1) {
    fault('refusal', 'reveals whether a thread has an owner', 'name both foreign and unknown, or write refusal: 403')
  }
  for (const key of ['forwardedProps', 'state', 'tools', 'messages', 'langgraph', 'interrupts', 'headers', 'limits'] as const) {
    if (rule[key] !== undefined) fault(key, 'is for allow rules only', 'a denied request forwards nothing')
  }
}

function callerFaults(rule: RuleOfFile, issuers: readonly string[], fault: Say): void {
  for (const [key, named] of [
    ['issuers', rule.issuers],
    ['unless', rule.unless?.issuers],
  ] as const) {
    for (const issuer of named ?? []) {
      if (!issuers.includes(issuer)) fault(key, `there is no issuer ${issuer}`, `configured: ${issuers.join(', ')}`)
    }
  }
  if (!(rule.deny ?? rule.allow ?? []).includes('anonymous')) return
  if (rule.issuers !== undefined) fault('issuers', 'anonymous callers have no issuer', 'give them a separate rule')
  for (const key of ['roles', 'permissions', 'claims'] as const) {
    if (rule[key] !== undefined) fault(key, `anonymous callers have no ${key}`, 'give them a separate rule')
  }
}

function checkProps(path: readonly PropertyKey[], props: PolicyFile['forwardedProps'], report: Report): void {
  for (const [at, { name, unsafe }] of props.entries()) {
    if (isUnsafeProp(name) && !unsafe) {
      report(
        [...path, at, 'name'],
        `${name} reaches the agent's configuration, identity or storage`,
        'to accept this, add unsafe: true to the entry',
      )
    }
  }
}
