/** What an explained request meets in place of the gateway: an upstream that records what it would get, a store and a snapshot. */
import { Readable } from 'node:stream'
import { serverHeaders, type Mount } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import { isObject, type JsonObject } from '../../core/json/read.ts'
import { refuse } from '../../core/reasons.ts'
import { assumedFacts, ENDPOINT, LANGGRAPH, type RuntimeFacts, type UpstreamKind } from '../../core/route/transport.ts'
import { wholeBody } from '../../http/upstream/answer-body.ts'
import { jsonOf, type UpstreamRequest } from '../../http/upstream/upstream.ts'
import type { UpstreamHandle } from '../../snapshot/upstream-handle.ts'
import type { OwnerRecord } from '../../core/decide/decide.ts'
import type { RequestStore } from '../../snapshot/assemble-pipeline.ts'
import type { Pipeline, RequestSnapshot } from '../../http/pipeline/stages.ts'

/** The value of each header that a simulated caller sends: it does not matter. */
export const AS_SENT = 'as sent'

export interface Sent {
  readonly transport: UpstreamKind
  readonly method: string
  readonly target: string
  /** A header has a value only if that is not secret. */
  readonly headers: readonly { readonly name: string; readonly value: string | null }[]
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
  if (transport === 'langgraph') return LANGGRAPH
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
    versionNotices: { met: () => {}, activate: () => {} },
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
  const secret = new Set(['authorization', 'cookie', identity.assertion?.header, ...Object.keys(serverHeaders(mount))])
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

/** @param record of the thread that the request addresses */
export function permissiveStore(record: OwnerRecord): RequestStore {
  const owner = record?.owner ?? ''
  const times = { createdAt: 0, lastUsedAt: 0, deletedAt: null }
  return {
    claim: async () => ({ outcome: 'own', registration: null }),
    settle: async () => false,
    noteWrite: async () => {},
    beginDeletion: async () => 'explained',
    endDeletion: async () => true,
    rename: async () => true,
    archive: async () => true,
    observe: async () => {},
    listed: async () => [],
    thread: async (key) => ({
      row: { ...key, ...times, owner, agentId: '', name: null, archived: false, provisional: false },
      grants: [],
      runners: [],
    }),
    grants: async () => [],
    grant: async () => 'done',
    ungrant: async () => 'done',
  }
}

export function steadySnapshot(pipeline: Pipeline, more: Partial<RequestSnapshot> = {}): RequestSnapshot {
  return {
    pipeline,
    upstreamKey: '',
    mark: () => 0,
    outdated: () => false,
    isReplaced: () => false,
    refusal: () => null,
    hidden: () => null,
    opened: () => {},
    decided: () => {},
    successor: () => refuse('rules-changed'),
    release: () => {},
    ...more,
  }
}
