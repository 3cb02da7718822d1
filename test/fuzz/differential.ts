/**
 * The property: either the gateway refuses, and the upstream sees nothing; or the real runtime resolves exactly the
 * operation, the ids and the thread that the gateway decided on - in what the gateway sends, and also in what the caller
 * wrote, because the gateway never changes what a request means (invariant 2).
 */
import type { RouteDescriptor } from '../../src/core/classify.ts'
import { bodyBytes, headerPairs, type Adapter, type Case, type Place } from './case.ts'
import { FOREIGN, makeGateUnderTest, type Outcome } from './gate-under-test.ts'
import { makeJudge, memberOf, type Resolution, type Verdict } from './judge.ts'
import type { Written } from './message.ts'
import { misreading, NEVER_SENT, repeatedKey } from './other-readers.ts'

/** What came of a case. */
export interface Finding {
  /** The route that was permitted and served, or why it was not. */
  readonly outcome: string
  readonly permitted: boolean
  /** What the runtime would have served, had the request reached it as it was written. */
  readonly asWritten: string | undefined
  /** How the property is broken; empty where it holds. */
  readonly faults: readonly string[]
}

/** Answers that need no upstream: a preflight, and a connect to a thread that nobody owns. */
const ANSWERED_HERE = 'answered by the gateway'

const gates = remembered((place: Place) => makeGateUnderTest(place))
const judges = remembered((place: Place, adapter: Adapter) => makeJudge(adapter, place))

/** Puts a case to the gateway and to the runtime, and compares. */
export async function examine(one: Case): Promise<Finding> {
  const outcome = await gates(one.place)(one)
  const judge = judges(one.place, one.adapter)
  const asWritten = await judge(written(one))
  const sent = outcome.sent[0]
  const faults = sent === undefined ? [] : faultsOf(outcome, await judge(sent), asWritten, one)
  return {
    outcome: outcome.descriptor?.route.id ?? (outcome.reason === 'permitted' ? ANSWERED_HERE : outcome.reason),
    permitted: sent !== undefined,
    asWritten: typeof asWritten === 'number' ? undefined : asWritten.route.method,
    faults: outcome.sent.length > 1 ? ['it was sent more than once'] : faults,
  }
}

/** The request as the runtime would get it without a gateway, but for the host, which is never the caller's to say. */
function written(one: Case): Written {
  const { method, target, httpVersion } = one
  // Nor is it asked what a body is written in that isn't there, at which Express's parser stumbles.
  const left = (one.body ?? '') === '' ? ['host', 'content-type', 'content-encoding'] : ['host']
  const headers = headerPairs(one).filter(([name]) => !left.includes(name.toLowerCase()))
  return { method, target, httpVersion, headers: [['host', 'runtime.internal'], ...headers], body: bodyBytes(one) }
}

/** The client's second way to ask for /info, which only the gateway reads as that (contract §1.3). */
function isInfoQuestion(one: Case): boolean {
  return one.method === 'POST' && one.body?.includes('"info"') === true
}

function faultsOf(outcome: Outcome, asSent: Verdict, asWritten: Verdict, one: Case): readonly string[] {
  const body = bodyBytes(one)
  const { descriptor } = outcome
  if (descriptor === undefined) return ['something was sent without a decision']
  const faults = differences(descriptor, asSent, SENT)
  if (isInfoQuestion(one) && descriptor.route.id === 'info') {
    if (typeof asWritten !== 'number') faults.push('the question for /info was one for something else')
    return faults
  }
  faults.push(...differences(descriptor, asWritten, WRITTEN))
  const repeated = sentBodyIsJson(outcome) && body !== null ? repeatedKey(body.toString('utf8')) : null
  if (repeated !== null) faults.push(`what was written: the body has ${print(repeated)} twice`)
  if (typeof asSent !== 'number' && typeof asWritten !== 'number') faults.push(...bodyDifferences(descriptor, asSent, asWritten))
  return faults
}

/** What a verdict is about: the gateway's own request, or the caller's. */
export const SENT = 'what was sent'
export const WRITTEN = 'what was written'

/** A recording goes through as it came. */
function sentBodyIsJson({ sent }: Outcome): boolean {
  return sent[0]?.headers.some(([name, value]) => name === 'content-type' && value === 'application/json') === true
}

/** How what the runtime resolved differs from what was decided. */
export function differences(descriptor: RouteDescriptor, verdict: Verdict, what: typeof SENT | typeof WRITTEN): string[] {
  const { route, ids } = descriptor
  if (typeof verdict === 'number') return [`${what}: decided ${route.id}, the runtime answers ${verdict}`]
  const faults: string[] = []
  const compare = (name: string, decided: unknown, resolved: unknown): void => {
    if (decided !== resolved) faults.push(`${what}: ${name} decided ${print(decided)}, resolved ${print(resolved)}`)
  }
  compare('the operation', route.id, verdict.route.method)
  compare('the method', route.method, verdict.method)
  compare('the agent', ids.agentId, verdict.route.agentId)
  compare('the memory', ids.memoryId, verdict.route.memoryId)
  const { thread } = verdict
  // The thread of a body that V8 misread is not the one that stands there (nodejs/node#63785).
  if (!(what === WRITTEN && isMisread(verdict.body))) compare('the thread', ids.threadId, thread)
  if (typeof thread === 'string' && thread.startsWith(FOREIGN)) faults.push(`${what}: ${print(thread)} is somebody else's`)
  const named = descriptor.query.filter(([name]) => name === 'agentId')
  for (const [kind, id] of [...Object.entries(ids), ...named]) {
    const wrong = misreading(kind, id)
    if (wrong !== null) faults.push(`decided on ${print(id)}, which ${wrong}`)
  }
  const strange = what === SENT ? verdict.query.filter(([name]) => !route.query.includes(name)) : []
  faults.push(...strange.map(([name]) => `${what}: the query has ${print(name)}`))
  for (const name of route.query) {
    // The gateway walks the upstream's pages itself.
    if (route.id === 'threads/list' && what === SENT && (name === 'limit' || name === 'cursor')) continue
    const decided = descriptor.query.filter(([known]) => known === name).map(([, value]) => value)
    const resolved = verdict.query.filter(([known]) => known === name).map(([, value]) => value)
    compare(`the query's ${name}`, print(decided), print(resolved))
  }
  return faults
}

/** What is sent is what was written, as far as the route knows it. */
function bodyDifferences({ route }: RouteDescriptor, asSent: Resolution, asWritten: Resolution): readonly string[] {
  if (route.body.kind === 'none' || isMisread(asWritten.body)) return []
  const { keys } = route.body
  const strange = keysOf(asSent.body).filter((key) => !keys.includes(key))
  const changed = keys.filter(
    (key) => key !== 'forwardedProps' && print(memberOf(asSent.body, key)) !== print(memberOf(asWritten.body, key)),
  )
  const sent = print(asSent.body)
  // What JSON writes of a string can't look like a key.
  const obeyed = NEVER_SENT.filter((key) =>
    key === '__proto__' ? sent.includes(`"${key}":`) : keysOf(asSent.body).includes(key),
  )
  return [
    ...obeyed.map((key) => `what was sent: the body has ${key}`),
    ...strange.map((key) => `what was sent: the body has ${print(key)}`),
    ...changed.map(
      (key) => `the body's ${key}: written ${print(memberOf(asWritten.body, key))}, sent ${print(memberOf(asSent.body, key))}`,
    ),
  ]
}

function isMisread(body: unknown): boolean {
  return keysOf(body).some((key) => key.includes('\\'))
}

function keysOf(body: unknown): readonly string[] {
  return typeof body === 'object' && body !== null ? Object.keys(body) : []
}

function print(value: unknown): string {
  return value === undefined
    ? 'nothing'
    : JSON.stringify(value, (_key, part: unknown) => (part === Infinity || part === -Infinity ? 'too large' : part))
}

function remembered<Keys extends readonly string[], Value>(make: (...keys: Keys) => Value): (...keys: Keys) => Value {
  const made = new Map<string, Value>()
  return (...keys) => {
    const key = keys.join()
    const known = made.get(key) ?? make(...keys)
    made.set(key, known)
    return known
  }
}
