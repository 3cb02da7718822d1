/** Compares what a runtime takes and gives with what the gateway knows. */
import { envelopeOf } from '../../src/core/route/envelope.ts'
import { ROUTES, type Route } from '../../src/core/route/routes.ts'
import { AGENT_HEADERS_WIN, agentHeadersWin } from '../../src/core/route/runtime-version.ts'
import type { RouteFacts, RuntimeContract } from './facts.ts'

/** What a runtime takes, and the gateway drops. */
export interface Closed {
  /** As of `RouteFacts`. */
  readonly routes: readonly string[]
  /** `*` for every key that the handler does not name. */
  readonly key: string
  readonly why: string
}

export const CLOSED: readonly Closed[] = [
  {
    routes: ['POST memories', 'PATCH memories/:memoryId'],
    key: 'sourceThreadIds',
    why: 'The managed platform takes ids of threads of any user there.',
  },
  {
    routes: ['PATCH threads/:threadId'],
    key: '*',
    why: 'Up to 1.69, every key reaches the managed platform. The gateway forwards `agentId`, `name` and `archived`.',
  },
]

/** What the gateway does with a field of `/info`. */
export type Treatment = 'read' | 'rewritten' | 'passed'

const ENDPOINT_FIELDS = ['inspect', 'list', 'mutations', 'realtimeMetadata']

export const INFO_FIELDS: Readonly<Record<string, Treatment>> = {
  version: 'read',
  mode: 'read',
  'intelligence.wsUrl': 'read',
  ...Object.fromEntries(ENDPOINT_FIELDS.map((name) => [`threadEndpoints.${name}`, 'rewritten' as const])),
  'singleRoute.resourceOperations': 'rewritten',
  ...Object.fromEntries(ENDPOINT_FIELDS.map((name) => [`singleRoute.threadEndpoints.${name}`, 'rewritten' as const])),
  'agents.*.name': 'passed',
  'agents.*.description': 'passed',
  'agents.*.className': 'passed',
  a2ui: 'passed',
  a2uiEnabled: 'passed',
  audioFileTranscriptionEnabled: 'passed',
  inspectorLearning: 'passed',
  inspectorMetadata: 'passed',
  licenseStatus: 'passed',
  openGenerativeUIEnabled: 'passed',
  runtimeEntitlements: 'passed',
  suggestions: 'passed',
  telemetryDisabled: 'passed',
}

const TUNNEL = 'resource/request'
const ENVELOPE_METHODS = new Set([...ROUTES.filter((route) => envelopeOf(route) === 'method').map(({ id }) => id), TUNNEL])
const ENVELOPE_KEYS = ['method', 'params', 'body']
const FORWARDED = ['authorization', 'x-*']

export const nameOf = ({ method, path }: Pick<RouteFacts, 'method' | 'path'>): string => `${method} ${path}`

const KNOWN = new Map(ROUTES.map((route) => [`${route.method} ${route.path.join('/')}`, route]))

/** Each with what it is and where. */
export function unknownIn(contract: RuntimeContract): readonly string[] {
  const { routes, unreached, envelopeMethods, envelopeKeys, infoFields, headers, version } = contract
  const agentsWin = agentHeadersWin(version)
  return [
    ...routes.flatMap((route) => unknownOf(route, KNOWN.get(nameOf(route)))),
    ...unreached.map((label) => `the name of a route ${label}, which no path and no envelope reached`),
    ...envelopeMethods.filter((method) => !ENVELOPE_METHODS.has(method)).map((method) => `the envelope method ${method}`),
    ...envelopeKeys.filter((key) => !ENVELOPE_KEYS.includes(key)).map((key) => `the key ${key} of an envelope`),
    ...infoFields.filter((field) => !Object.hasOwn(INFO_FIELDS, field)).map((field) => `the field ${field} of /info`),
    ...headers.forwarded.filter((name) => !FORWARDED.includes(name)).map((name) => `the header ${name}, which reaches agents`),
    ...(agentsWin === (headers.winner === 'agent')
      ? []
      : [`the headers of the ${headers.winner} win at an agent, unlike before or from ${AGENT_HEADERS_WIN} on`]),
  ]
}

function unknownOf(facts: RouteFacts, route: Route | undefined): readonly string[] {
  const name = nameOf(facts)
  if (route === undefined) return [`the route ${name}`]
  const keys = [...facts.bodyKeys, ...(facts.readsOtherKeys ? ['*'] : [])]
  const isKnown = (key: string): boolean =>
    route.body.keys.includes(key) || CLOSED.some((closed) => closed.key === key && closed.routes.includes(name))
  return [
    ...keys.filter((key) => !isKnown(key)).map((key) => `the body key ${key === '*' ? 'of any name' : key} of ${name}`),
    ...(facts.isTunnelled && envelopeOf(route) !== 'tunnel' ? [`${name} in an envelope ${TUNNEL}`] : []),
  ]
}

/** Every runtime has these: without one of them, its source has become another, and the answers say nothing. */
const EXPECTED_ROUTES = [
  'GET info',
  'POST agent/:agentId/run',
  'POST agent/:agentId/connect',
  'POST agent/:agentId/stop/:threadId',
]
const EXPECTED_KEYS = ['threadId', 'runId', 'messages', 'forwardedProps']
const EXPECTED_METHODS = ['info', 'agent/run', 'agent/connect', 'agent/stop']

/** What was not found although every runtime has it. */
export function missingIn({ routes, envelopeMethods, envelopeKeys, infoFields }: RuntimeContract): readonly string[] {
  const names = routes.map(nameOf)
  const run = routes.find((route) => nameOf(route) === EXPECTED_ROUTES[1])
  const lacks = (expected: readonly string[], found: readonly string[], what: string): readonly string[] =>
    expected.filter((one) => !found.includes(one)).map((one) => `${what} ${one}`)
  return [
    ...lacks(EXPECTED_ROUTES, names, 'the route'),
    ...lacks(EXPECTED_KEYS, run?.bodyKeys ?? [], 'the key of a run'),
    ...lacks(EXPECTED_METHODS, envelopeMethods, 'the envelope method'),
    ...lacks(ENVELOPE_KEYS, envelopeKeys, 'the key of an envelope'),
    ...lacks(['version', 'mode'], infoFields, 'the field of /info'),
  ]
}
