/** The routes that are about a thread, each as the request that an honest client would make of it. */
import { runInput } from '../../testing/support/client.ts'
import type { TestGateway } from '../../testing/support/gateway.ts'
import type { RawRequest } from '../../testing/support/raw.ts'

/** The public base path of the tests' gateways. */
export const BASE = '/api/copilotkit'

/** A route, and a request to it that names a thread. */
export interface ThreadRoute {
  readonly name: string
  readonly to: (threadId: string) => RawRequest
}

/** Routes whose thread is in the path; the id must be written as it stands in a target. */
export const PATH_ROUTES: readonly ThreadRoute[] = [
  { name: 'threads/messages', to: (id) => ({ target: `${BASE}/threads/${id}/messages` }) },
  { name: 'threads/events', to: (id) => ({ target: `${BASE}/threads/${id}/events` }) },
  { name: 'threads/state', to: (id) => ({ target: `${BASE}/threads/${id}/state` }) },
  { name: 'rename', to: (id) => ({ method: 'PATCH', target: `${BASE}/threads/${id}`, body: '{"name":"n"}' }) },
  { name: 'delete', to: (id) => ({ method: 'DELETE', target: `${BASE}/threads/${id}` }) },
  { name: 'threads/archive', to: (id) => ({ method: 'POST', target: `${BASE}/threads/${id}/archive` }) },
  { name: 'agent/stop', to: (id) => ({ method: 'POST', target: `${BASE}/agent/default/stop/${id}` }) },
]

/** Targets and bodies of the routes whose thread is in the body. */
export const BODY_TARGETS: readonly {
  readonly name: string
  readonly target: string
  readonly body: (id: unknown) => Record<string, unknown>
}[] = [
  { name: 'agent/run', target: `${BASE}/agent/default/run`, body: runInput },
  { name: 'agent/connect', target: `${BASE}/agent/default/connect`, body: runInput },
  { name: 'agent/suggest', target: `${BASE}/agent/default/suggest`, body: runInput },
  { name: 'annotate', target: `${BASE}/annotate`, body: (threadId) => ({ threadId, type: 'x', payload: {} }) },
]

/** Routes whose thread is in the body. */
export const BODY_ROUTES: readonly ThreadRoute[] = BODY_TARGETS.map(({ name, target, body }) => ({
  name,
  to: (id) => ({ target, body: JSON.stringify(body(id)) }),
}))

/** A run on a thread, over a raw socket; the status of its answer. */
export async function run(gateway: TestGateway, token: string, threadId: string): Promise<number> {
  return (await gateway.ask({ target: `${BASE}/agent/default/run`, token, body: JSON.stringify(runInput(threadId)) })).status
}

/** The `code` of an answer of the gateway's own; undefined for any other. */
export function codeIn(answer: { readonly body: string }): unknown {
  try {
    return (JSON.parse(answer.body) as { code?: unknown }).code
  } catch {
    return undefined
  }
}
