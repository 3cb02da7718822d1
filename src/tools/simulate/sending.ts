/** Builds the upstream request for a permitted request. It contains no secret value. */
import { serverHeaders, type Mount } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import { configuredBody, passingBody } from '../../core/route/bodies.ts'
import type { Permit } from '../../core/decide/decide.ts'
import { BUILT_IN, headerLines, narrowed, upstreamHeaders } from '../../core/wire/headers.ts'
import type { JsonObject } from '../../core/json/read.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import { limitIn } from '../../core/wire/thread-page.ts'
import { assumedFacts, ENDPOINT, wireForm, type RuntimeFacts, type UpstreamKind } from '../../core/route/transport.ts'
import type { TriedBody } from './body.ts'

/** A header of the request; it has a value only if that is not secret. */
export interface SentHeader {
  readonly name: string
  readonly value: string | null
}

export interface Sent {
  readonly outcome: 'sent'
  readonly transport: UpstreamKind
  readonly method: string
  readonly target: string
  readonly headers: readonly SentHeader[]
  readonly passing: readonly string[]
  readonly body: JsonObject | null
  readonly dropped: readonly string[]
}

export type IdentityHeaders = (permit: Permit) => Readonly<Record<string, string>>

/** What a simulation assumes about an upstream that it does not ask. */
export function assumed({ transport }: Mount): RuntimeFacts {
  if (transport === 'endpoint') return ENDPOINT
  return assumedFacts(transport === 'auto' ? 'multi-route' : transport)
}

export interface SendingParts {
  readonly config: Config
  readonly identity: IdentityHeaders
}

/**
 * @param hasCredential whether the caller sent an Authorization header
 * @returns a refusal for a body that is too large after rewriting, or for an invalid limit; null where the gateway answers
 *   itself
 */
export function sentFor(
  permit: Permit,
  body: TriedBody,
  hasCredential: boolean,
  mount: Mount,
  { config, identity }: SendingParts,
): Sent | Refusal | null {
  const { route } = permit.descriptor
  const passes = body.value === null ? null : passingBody(route, body.value, permit.rule.passes)
  const most = permit.rule.limits.body ?? configuredBody(config.limits, route)
  const written = passes === null ? 0 : Buffer.byteLength(JSON.stringify(passes.body))
  if (passes !== null && (body.bytes > most || written > most)) return refuse('body-too-large')
  if (route.own === true) return null
  // The gateway reads the pages of a list itself.
  const walked = route.id === 'threads/list' && config.enforcement === 'enforce'
  if (walked && limitIn(permit.descriptor.query) === null) return refuse('query-limit-invalid')
  const query = permit.descriptor.query.filter(([name]) => !walked || (name !== 'limit' && name !== 'cursor'))
  const facts = assumed(mount)
  const wire = wireForm(facts, mount.basePath, permit.descriptor, query)
  const value = passes?.body ?? null
  const enveloped =
    wire.envelope === null
      ? value
      : { method: wire.envelope.method, params: wire.envelope.params, ...(value === null ? {} : { body: value }) }
  return {
    outcome: 'sent',
    transport: facts.transport,
    method: wire.method,
    target: wire.target,
    ...headersFor(permit, enveloped !== null, hasCredential, mount, { config, identity }),
    body: enveloped,
    dropped: [...body.dropped, ...(passes?.dropped ?? [])],
  }
}

/** A caller who sends every header that may pass; its values do not matter. */
const EVERYTHING = 'as sent'

function headersFor(
  permit: Permit,
  hasBody: boolean,
  hasCredential: boolean,
  mount: Mount,
  { config, identity }: SendingParts,
): Pick<Sent, 'headers' | 'passing'> {
  const { forwardHeaders } = config
  const server = serverHeaders(mount)
  const forward = forwardHeaders.map((name) => name.toLowerCase())
  const rules = narrowed({ server, forward, forwardAuthorization: mount.forwardAuthorization }, permit.rule)
  const own: Readonly<Record<string, string>> = {
    ...identity(permit),
    'x-request-id': 'made for each request',
    ...(hasBody ? { 'content-type': 'application/json' } : {}),
  }
  const sent = [...BUILT_IN, ...forward]
  const lines = headerLines([...sent, ...(hasCredential ? ['authorization'] : [])].flatMap((name) => [name, EVERYTHING]))
  const headers = Object.entries(upstreamHeaders(lines, rules, own))
  const { assertion } = config.identity
  const secret = new Set(['authorization', assertion?.header, ...Object.keys(server)])
  const isTheirs = ([name, value]: readonly [string, string]): boolean =>
    value === EVERYTHING && !secret.has(name) && !(name in own)
  return {
    headers: headers.filter((one) => !isTheirs(one)).map(([name, value]) => ({ name, value: secret.has(name) ? null : value })),
    passing: headers.filter(isTheirs).map(([name]) => name),
  }
}
