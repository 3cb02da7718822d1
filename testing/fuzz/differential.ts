/**
 * The property: either the gateway refuses, and the upstream sees nothing; or the real runtime resolves exactly the
 * operation, the ids and the thread that the gateway decided on - in what the gateway sends, read on the upstream's
 * transport, and also in what the caller wrote, read on the caller's, because the gateway never changes what a request
 * means (docs/contributing/invariants.md, 2). And what it sends means nothing on the other transport than the upstream's.
 */
import { isDeepStrictEqual } from 'node:util'
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import type { Transport } from '../../src/core/route/transport.ts'
import { bodyBytes, clientOf, headerPairs, pairOf, PLACES, type Adapter, type Case, type Place } from './case.ts'
import { differences, isMisread, keysOf, print, SENT, WRITTEN } from './differences.ts'
import { makeGateUnderTest, reachFaults, type Outcome } from './gate-under-test.ts'
import { memberOf, type Resolution } from './handed-on.ts'
import { makeJudge, type Verdict } from './judge.ts'
import type { Written } from './message.ts'
import { NEVER_SENT, repeatedKey } from './other-readers.ts'
import { closedMember } from './run-shape.ts'
import { shapeFaults } from './sent-shape.ts'
import type { Finding } from './tally.ts'

/** Answers that need no upstream: a preflight, and a connect to a thread that nobody owns. */
const ANSWERED_HERE = 'answered by the gateway'

const gates = remembered((place: Place, upstream: Transport) => makeGateUnderTest(place, upstream))
const judges = remembered((adapter: Adapter, transport: Transport, basePath: string) =>
  makeJudge({ adapter, transport, basePath }),
)

/** Puts a case to the gateway and to the runtime, and compares. */
export async function examine(one: Case): Promise<Finding> {
  const outcome = await gates(one.place, one.upstream)(one)
  const asWritten = await readAsWritten(one, clientOf(one))
  const sent = outcome.sent[0]
  const faults = sent === undefined ? [] : await faultsOf(outcome, sent, asWritten, one)
  // A caller may also write for the upstream what means nothing to the gateway.
  const averted = sent === undefined && typeof asWritten === 'number' ? await readAsWritten(one, one.upstream) : asWritten
  return {
    outcome: outcome.descriptor?.route.id ?? (outcome.reason === 'permitted' ? ANSWERED_HERE : outcome.reason),
    group: pairOf(one),
    permitted: sent !== undefined,
    asWritten: typeof averted === 'number' ? undefined : averted.route.method,
    faults: outcome.sent.length > 1 ? ['it was sent more than once'] : faults,
  }
}

/** What a runtime of the caller's choice would make of a request that reached it as it was written. */
function readAsWritten(one: Case, transport: Transport): Promise<Verdict> {
  const { basePath, publicPath } = PLACES[one.place]
  // A path is found by its end, whatever stands before; an envelope only where the caller knows the runtime to be.
  return judges(one.adapter, transport, transport === 'single-route' ? publicPath : basePath)(written(one))
}

/** The request as the runtime would get it without a gateway, but for what is never the caller's to say. */
function written(one: Case): Written {
  const { method, target, httpVersion } = one
  // The host; and what a body is written in that isn't there, at which Express's parser stumbles.
  const left = (one.body ?? '') === '' ? ['host', 'content-type', 'content-encoding'] : ['host']
  const headers = headerPairs(one)
    .filter(([name]) => !left.includes(name.toLowerCase()))
    // The runtime looks for the type of an envelope in lower case, and gets it so from the gateway.
    .map(([name, value]) => [name, /^application\/json\b/i.test(value) ? value.toLowerCase() : value] as const)
  return { method, target, httpVersion, headers: [['host', 'runtime.internal'], ...headers], body: bodyBytes(one) }
}

async function faultsOf(outcome: Outcome, sent: Written, asWritten: Verdict, one: Case): Promise<readonly string[]> {
  const body = bodyBytes(one)
  const { descriptor } = outcome
  if (descriptor === undefined) return ['something was sent without a decision']
  const { basePath } = PLACES[one.place]
  const asSent = await judges(one.adapter, one.upstream, basePath)(sent)
  const elsewhere = await judges(one.adapter, other(one.upstream), basePath)(sent)
  const misread = body !== null && isMisread(body)
  const faults = [
    ...shapeFaults(sent, one.upstream, basePath),
    ...differences(descriptor, asSent, SENT),
    ...differences(descriptor, asWritten, WRITTEN, misread),
    ...reachFaults(asSent, SENT),
    ...reachFaults(asWritten, WRITTEN),
  ]
  if (typeof elsewhere !== 'number') {
    faults.push(`what was sent: the ${other(one.upstream)} transport resolves ${elsewhere.route.method} in it`)
  }
  const repeated = bodyIsJson(one) && body !== null ? repeatedKey(body.toString('utf8')) : null
  if (repeated !== null) faults.push(`what was written: the body has ${print(repeated)} twice`)
  if (typeof asSent !== 'number' && typeof asWritten !== 'number' && !misread) {
    faults.push(...bodyDifferences(descriptor, asSent, asWritten))
  }
  return faults
}

function other(transport: Transport): Transport {
  return transport === 'multi-route' ? 'single-route' : 'multi-route'
}

/** Not a recording, whose bytes may look like anything. */
function bodyIsJson(one: Case): boolean {
  return one.headers.some(([name, value]) => name.toLowerCase() === 'content-type' && /json/i.test(value))
}

const TAKES_RUN: ReadonlySet<string> = new Set(['agent/run', 'agent/connect', 'agent/suggest'])

/** The order of members means nothing. */
function isSame(one: unknown, other: unknown): boolean {
  return print(one) === print(other) || isDeepStrictEqual(one, other)
}

/** What is sent is what was written, as far as the route and AG-UI know it. */
function bodyDifferences({ route }: RouteDescriptor, asSent: Resolution, asWritten: Resolution): readonly string[] {
  if (route.body.kind === 'none') return []
  const { keys } = route.body
  const strange = keysOf(asSent.body).filter((key) => !keys.includes(key))
  const version = memberOf(asWritten.body, 'protocolVersion')
  const hidesVersion = typeof version !== 'string' || !/^\d+\.\d+$/.test(version)
  const changed = keys.filter((key) => {
    if (key === 'forwardedProps') return false
    const own = memberOf(asWritten.body, key)
    const expected =
      key === 'protocolVersion' && hidesVersion ? undefined : TAKES_RUN.has(route.id) ? closedMember(key, own) : own
    return !isSame(memberOf(asSent.body, key), expected)
  })
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

function remembered<Keys extends readonly string[], Value>(make: (...keys: Keys) => Value): (...keys: Keys) => Value {
  const made = new Map<string, Value>()
  return (...keys) => {
    const key = keys.join()
    const known = made.get(key) ?? make(...keys)
    made.set(key, known)
    return known
  }
}
