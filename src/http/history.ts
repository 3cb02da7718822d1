/**
 * `unknownThread: verify`: whether the upstream already holds something of a thread that nobody owns (design "Unknown
 * threads"). It sees the runtime's own store only.
 */
import { classify, type RouteDescriptor } from '../core/classify.ts'
import { isObject, type Json } from '../core/json.ts'
import { refuse, type Refusal } from '../core/reasons.ts'
import { hasOperation, type RuntimeFacts } from '../core/transport.ts'
import { upstreamRequest } from './upstream-request.ts'
import { collect, type Upstream } from './upstream.ts'

/** What the upstream said of a thread's history. */
export type History = 'none' | 'some' | 'cannot-tell'

/**
 * Asks the upstream for the messages and then the events of a thread.
 * @param facts what the upstream is
 * @param headers the caller's, as they would go upstream
 * @returns `none` if both are empty or unknown, `cannot-tell` where the runtime does not serve them (422), `some` for
 * content and every other refusal of the upstream's; a refusal (502, 504) if it gave no usable answer
 */
export type AskHistory = (
  facts: RuntimeFacts,
  threadId: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
) => Promise<History | Refusal>

/** Histories beyond this are not read to their end: they are not empty. */
const MAX_BYTES = 64 * 1024

/** Makes the question. */
export function makeAskHistory(upstream: Upstream, basePath: string): AskHistory {
  return async (facts, threadId, headers, signal) => {
    for (const part of ['messages', 'events'] as const) {
      const descriptor = classify('GET', ['threads', threadId, part], new Map()) as RouteDescriptor
      if (!hasOperation(facts, descriptor.route)) return 'cannot-tell'
      const answer = await upstream.send(upstreamRequest(facts, basePath, { descriptor, headers }), signal)
      if (answer.outcome === 'failed') return answer.refusal
      if (answer.status === 200) {
        const bytes = await collect(answer.body, MAX_BYTES)
        if (bytes === 'broke-off') return refuse('upstream-broke-off')
        if (bytes === 'too-large' || !isEmptyList(bytes, part)) return 'some'
        continue
      }
      answer.body.destroy()
      if (answer.status === 404) continue
      if (answer.status === 422) return 'cannot-tell'
      return answer.status >= 400 && answer.status < 500 ? 'some' : refuse('upstream-answer-unreadable')
    }
    return 'none'
  }
}

function isEmptyList(bytes: Buffer, name: string): boolean {
  try {
    const value = JSON.parse(bytes.toString('utf8')) as Json
    const list = isObject(value) ? value[name] : undefined
    return Array.isArray(list) && list.length === 0
  } catch {
    return false
  }
}
