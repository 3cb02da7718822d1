/** Asks if the upstream holds part of an unowned thread (`unknownThread: verify`; docs/explanation/ownership.md). */
import { classify, type RouteDescriptor } from '../../core/route/classify.ts'
import { LANGGRAPH_THREAD } from '../../core/route/langgraph-routes.ts'
import { isObject } from '../../core/json/read.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import { hasOperation, type RuntimeFacts } from '../../core/route/transport.ts'
import { jsonOf, upstreamRequest, type ClientDisconnect, type Upstream, type UpstreamAnswer } from '../upstream/upstream.ts'
import { collect } from '../upstream/answer-body.ts'

export type History = 'none' | 'some' | 'cannot-tell'

/**
 * Asks the upstream for the messages and then the events of a thread.
 * @returns `none` if both are empty or unknown. `cannot-tell` where the runtime does not serve them (422, or too old). `some` for
 * content and every other refusal of the upstream. A refusal (502, 504) without a usable answer.
 */
export type AskHistory = (
  facts: RuntimeFacts,
  threadId: string,
  headers: Readonly<Record<string, string>>,
  signal: ClientDisconnect,
) => Promise<History | Refusal>

/** The gateway does not read a longer history to its end: it is not empty. */
const MAX_BYTES = 64 * 1024

/** `suspect` is called for an answer that a change of the upstream's transport would explain. */
export function makeAskHistory(upstream: Upstream, basePath: string, suspect: () => void = () => {}): AskHistory {
  const askThread = async (
    facts: RuntimeFacts,
    threadId: string,
    headers: Readonly<Record<string, string>>,
    signal: ClientDisconnect,
  ): Promise<History | Refusal> => {
    const descriptor = { outcome: 'classified', route: LANGGRAPH_THREAD, ids: { threadId }, query: [] } as const
    const answer = await upstream.send(upstreamRequest(facts, basePath, { descriptor, headers }), signal)
    if (answer.outcome === 'failed') return answer.refusal
    answer.body.destroy()
    if (answer.status === 404) return 'none'
    return answer.status === 200 || (answer.status > 400 && answer.status < 500) ? 'some' : refuse('upstream-answer-unreadable')
  }

  return async (facts, threadId, headers, signal) => {
    // A LangGraph server tells whether it has a thread, whatever is in it.
    if (facts.transport === 'langgraph') return askThread(facts, threadId, headers, signal)
    for (const part of ['messages', 'events'] as const) {
      const descriptor = classify('GET', ['threads', threadId, part], new Map()) as RouteDescriptor
      if (facts.histories === false || !hasOperation(facts, descriptor.route)) return 'cannot-tell'
      const answer = await upstream.send(upstreamRequest(facts, basePath, { descriptor, headers }), signal)
      if (answer.outcome === 'failed') return answer.refusal
      const said = await told(answer, part)
      if (said === 'another-transport') suspect()
      if (said !== 'none') return said === 'another-transport' ? refuse('upstream-answer-unreadable') : said
    }
    return 'none'
  }
}

/** `another-transport`: the runtime did not understand the question. */
async function told(answer: UpstreamAnswer, part: string): Promise<History | 'another-transport' | Refusal> {
  const { status, body } = answer
  if (status !== 200 && status !== 404) {
    body.destroy()
    if (status === 422) return 'cannot-tell'
    if (status === 405 || status === 415) return 'another-transport'
    return status >= 400 && status < 500 ? 'some' : refuse('upstream-answer-unreadable')
  }
  const bytes = await collect(body, MAX_BYTES)
  if (bytes === 'broke-off') return refuse('upstream-broke-off')
  const value = bytes === 'too-large' ? undefined : jsonOf(bytes)
  const named = isObject(value) ? value : {}
  if (status === 200) return Array.isArray(named[part]) && named[part].length === 0 ? 'none' : 'some'
  // The answer for an unknown thread is neither a framework's page nor an error about an envelope.
  const html = String(answer.headers['content-type']).includes('html')
  const complains = typeof named['code'] === 'string' && named['code'].startsWith('single_route_envelope')
  return html || complains ? 'another-transport' : 'none'
}
