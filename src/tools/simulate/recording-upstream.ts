/** An upstream that records the first request that it would get. What is shown of it contains no secret value. */
import { Readable } from 'node:stream'
import { serverHeaders, type Mount } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import { isObject, type JsonObject } from '../../core/json/read.ts'
import { refuse } from '../../core/reasons.ts'
import { assumedFacts, ENDPOINT, type RuntimeFacts, type UpstreamKind } from '../../core/route/transport.ts'
import { wholeBody } from '../../http/upstream/answer-body.ts'
import { jsonOf, type UpstreamRequest } from '../../http/upstream/upstream.ts'
import type { UpstreamHandle } from '../../snapshot/upstream-handle.ts'

/** The value of each header that a simulated caller sends: it does not matter. */
export const AS_SENT = 'as sent'

/** A header of the request; it has a value only if that is not secret. */
export interface SentHeader {
  readonly name: string
  readonly value: string | null
}

export interface Sent {
  readonly transport: UpstreamKind
  readonly method: string
  readonly target: string
  readonly headers: readonly SentHeader[]
  /** The names of the caller's headers that pass. */
  readonly passing: readonly string[]
  readonly body: JsonObject | null
  readonly dropped: readonly string[]
}

export interface Recorded {
  request: UpstreamRequest | null
  readonly dropped: string[]
}

/** What a simulation assumes about an upstream that it does not ask. */
export function assumed({ transport }: Mount): RuntimeFacts {
  if (transport === 'endpoint') return ENDPOINT
  return assumedFacts(transport === 'auto' ? 'multi-route' : transport)
}

/** @param history what the upstream says when the gateway asks it about an unowned thread */
export function recordingHandle(mount: Mount, recorded: Recorded, history: 'none' | 'some'): UpstreamHandle {
  const facts = assumed(mount)
  return {
    fingerprint: '',
    upstream: {
      async send(request) {
        // Only a permitted request waits for its permit to be checked again.
        if (request.mayBegin === undefined) {
          return { outcome: 'answered', status: history === 'none' ? 404 : 403, headers: {}, body: wholeBody(Buffer.from('{}')) }
        }
        request.mayBegin()
        recorded.request ??= request
        return { outcome: 'failed', refusal: refuse('upstream-unreachable'), maybeSent: true, detail: 'recorded' }
      },
      retire: async () => {},
      close: async () => {},
    },
    probe: { facts, suspect: () => {}, start: async () => {}, stop: () => {} },
    startupChecks: { look: () => {}, historyUntold: () => {}, stop: () => {} },
    headers: serverHeaders(mount),
    hold: () => {},
    release: () => {},
    retire: () => {},
  }
}

/** @returns null where nothing is sent */
export function sentOf({ request, dropped }: Recorded, mount: Mount, { identity }: Config): Sent | null {
  if (request === null) return null
  const { method, target, headers, body } = request
  const secret = new Set(['authorization', identity.assertion?.header, ...Object.keys(serverHeaders(mount))])
  const all = Object.entries(headers)
  const isCallers = ([name, value]: readonly [string, string]): boolean => value === AS_SENT && !secret.has(name)
  const value = body === undefined || body instanceof Readable ? undefined : jsonOf(Buffer.concat(body))
  return {
    transport: assumed(mount).transport,
    method,
    target,
    headers: all.filter((one) => !isCallers(one)).map(([name, text]) => ({ name, value: secret.has(name) ? null : text })),
    passing: all.filter(isCallers).map(([name]) => name),
    body: isObject(value) ? value : null,
    dropped,
  }
}
