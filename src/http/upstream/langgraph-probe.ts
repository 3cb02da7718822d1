/** Asks a LangGraph server for its version. Only the configuration says what it is, so no request waits for the answer. */
import { isObject } from '../../core/json/read.ts'
import { ROUTES_OF } from '../../core/route/all-routes.ts'
import { classify, type RouteDescriptor } from '../../core/route/classify.ts'
import { LANGGRAPH } from '../../core/route/transport.ts'
import { collect } from './answer-body.ts'
import type { ProbeParts, TransportProbe } from './transport-probe.ts'
import { jsonOf, upstreamRequest, type Upstream } from './upstream.ts'

export type ServerAnswer =
  /** `version`: null from a server that does not tell it; `isServer`: the answer is that of a LangGraph server. */
  | { readonly kind: 'answers'; readonly status: number; readonly version: string | null; readonly isServer: boolean }
  | { readonly kind: 'away'; readonly why: string }

const ASK_TIMEOUT_MS = 10_000
const MAX_INFO_BYTES = 256 * 1024

const INFO = classify('GET', ['info'], new Map(), ROUTES_OF.langgraph) as RouteDescriptor

export function makeLangGraphProbe(parts: Omit<ProbeParts, 'named'>): TransportProbe {
  const { log, intervals } = parts
  const stopped = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let said: string | null = null
  let version: string | null | undefined

  const say = (why: string | null): void => {
    parts.readiness.set('upstream', why)
    if (why !== null && why !== said) log.warn({ pending: why }, 'waiting for the upstream')
    said = why
  }

  const met = (now: string | null): void => {
    const isFirst = version === undefined
    if (version !== now || said !== null) log.info({ kind: 'langgraph', version: now }, 'the LangGraph server answers')
    version = now
    say(null)
    if (now !== null) parts.onVersion(now)
    if (isFirst) parts.onNews(LANGGRAPH)
  }

  const ask = async (): Promise<void> => {
    const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(ASK_TIMEOUT_MS)])
    const answer = await askServer(parts, signal)
    if (stopped.signal.aborted) return
    if (answer.kind === 'away') say(answer.why)
    else met(answer.version)
    timer = setTimeout(() => void ask(), said === null ? intervals.known : intervals.pending)
  }

  return {
    facts: LANGGRAPH,
    suspect: () => {},
    start: () => {
      parts.readiness.set('upstream', 'the upstream has not been asked yet')
      return ask()
    },
    stop: () => {
      stopped.abort()
      clearTimeout(timer)
    },
  }
}

export async function askServer(
  { upstream, basePath, headers }: { readonly upstream: Upstream } & Pick<ProbeParts, 'basePath' | 'headers'>,
  signal: AbortSignal,
): Promise<ServerAnswer> {
  const asked = { descriptor: INFO, headers: { ...headers, accept: 'application/json', 'accept-encoding': 'identity' } }
  const request = upstreamRequest(LANGGRAPH, basePath, asked)
  const question = `${request.method} ${request.target}`
  const answer = await upstream.send(request, signal)
  if (answer.outcome === 'failed') return { kind: 'away', why: `${question} got no answer (${answer.detail})` }
  const { status } = answer
  const bytes = await collect(answer.body, MAX_INFO_BYTES)
  // The server is there, and has no answer now (RFC 9110 §15.5.9, RFC 6585 §4).
  if (status >= 500 || status === 408 || status === 429) return { kind: 'away', why: `${question} answered ${status}` }
  if (bytes === 'broke-off') return { kind: 'away', why: `${question} broke off in its answer` }
  const info = status === 200 && bytes !== 'too-large' ? jsonOf(bytes) : undefined
  const version = isObject(info) && typeof info['version'] === 'string' ? info['version'] : null
  // A runtime answers here, too, and names its agents.
  const isServer = isObject(info) && info['agents'] === undefined && (version !== null || isObject(info['flags']))
  return { kind: 'answers', status, version, isServer }
}
