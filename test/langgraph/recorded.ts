/** A gateway before a LangGraph server that a test plays: what reaches it, and what it answers, is the test's. */
import type { Test } from 'tap'
import type { Call, Reply } from '../../testing/support/client.ts'
import { gated, type GatedOptions, type GatedUpstream } from '../../testing/support/gated.ts'
import { requestBytes, sendRaw, firstAnswer, type RawRequest } from '../../testing/support/raw.ts'
import { until } from '../../testing/support/until.ts'
import { json, startUpstream, type Answering, type Recorded, type Upstream } from '../../testing/support/upstream.ts'

export interface RecordedScene extends Omit<GatedUpstream, 'upstream' | 'base'> {
  readonly server: Upstream
  /** Where callers find it. */
  readonly url: string
  readonly ask: (token: string, path: string, options?: Call) => Promise<Reply>
  /** Writes a request by hand; its target stands below `/graphs`. */
  readonly raw: (token: string, request: RawRequest) => Promise<{ readonly status: number; readonly body: string }>
  /** Why the last request was decided as it was. */
  readonly reason: () => unknown
  /** Makes a thread the caller's, by a creation that the server confirms. */
  readonly create: (token: string, threadId?: string) => Promise<string>
}

/** A server that has every thread and run that it is asked for. */
export const obliging: Answering = (request, response) => {
  const [, , threadId, , runId] = request.target.split('?')[0]?.split('/') ?? []
  const { thread_id: named } = (request.json ?? {}) as { thread_id?: string }
  void json({ thread_id: named ?? threadId, ...(runId === undefined ? {} : { run_id: runId }) })(request, response)
}

export async function recorded(t: Test, answering: Answering = obliging, options: GatedOptions = {}): Promise<RecordedScene> {
  const upstream = await startUpstream(answering)
  t.teardown(() => upstream.close())
  // What the gateway asks at its start comes at any moment, and has no request id.
  const ofCallers = (): readonly Recorded[] => upstream.requests.filter(({ headers }) => headers.has('x-request-id'))
  const server: Upstream = {
    ...upstream,
    get requests() {
      return ofCallers()
    },
    arrived: (count) => until(() => ofCallers().length >= count),
  }
  const { upstreams, ...config } = (options.config ?? {}) as { upstreams?: { graphs?: object } }
  const graphs = { kind: 'langgraph', url: server.url, ...upstreams?.graphs }
  const gate = await gated(t, json({}), { ...options, config: { ...config, upstreams: { graphs } } })
  const url = `${gate.gateway.url}/graphs`
  const ask: RecordedScene['ask'] = (token, path, more) => gate.call(`${url}${path}`, { token, ...more })
  return {
    ...gate,
    server,
    url,
    ask,
    raw: async (token, request) =>
      firstAnswer(await sendRaw(gate.gateway.url, requestBytes({ ...request, token, target: `/graphs${request.target}` }))),
    reason: () => gate.gateway.lines.findLast(({ msg }) => msg === 'request')?.['reason'],
    async create(token, threadId = crypto.randomUUID()) {
      const reply = await ask(token, '/threads', { body: { thread_id: threadId } })
      if (reply.status !== 200) throw new Error(`the thread was not created: ${reply.status} ${reply.text}`)
      return threadId
    },
  }
}

/** Method and path of the requests that reached the server. */
export function targets(requests: readonly Recorded[]): readonly string[] {
  return requests.map(({ method, target }) => `${method} ${target}`)
}
