/** Probes the upstream's transport. A request for one transport means nothing to the other (core/route/transport.ts). */
import { classify, type RouteDescriptor } from '../../core/route/classify.ts'
import { assumedFacts, readRuntimeInfo, TRANSPORTS, type RuntimeFacts, type Transport } from '../../core/route/transport.ts'
import type { Logger } from '../../observe/log.ts'
import type { Readiness } from '../listeners/readiness.ts'
import { upstreamRequest, jsonOf, type Upstream } from './upstream.ts'
import { collect } from './answer-body.ts'

export interface TransportState {
  /** Null while they are unknown. */
  readonly facts: RuntimeFacts | null
  /** Called for an answer that a change of transport would explain: the probe then asks again soon. */
  suspect(): void
}

export interface TransportProbe extends TransportState {
  start(): Promise<void>
  stop(): void
}

export interface ProbeParts {
  readonly upstream: Upstream
  readonly basePath: string
  /** The server's own headers: the probe has no caller. */
  readonly headers: Readonly<Record<string, string>>
  /** The transport that the configuration names: forwarding then does not wait for the answer. */
  readonly named: Transport | null
  readonly readiness: Pick<Readiness, 'set'>
  readonly onNews: (upstream: RuntimeFacts) => void
  /** Called with each answer: the upstream may have been upgraded. */
  readonly onVersion: (version: string) => void
  readonly log: Logger
  /** Milliseconds between questions: while the answer is awaited, and once it is known. */
  readonly intervals: { readonly pending: number; readonly known: number }
}

export type Verdict =
  | { readonly kind: 'runtime'; readonly facts: RuntimeFacts; readonly version: string }
  | { readonly kind: 'away'; readonly why: string }
  | { readonly kind: 'unfit'; readonly why: string }

/** An upstream that stalls in the middle of its answer is asked again. */
const PROBE_TIMEOUT_MS = 10_000
const MAX_INFO_BYTES = 256 * 1024

const INFO = classify('GET', ['info'], new Map()) as RouteDescriptor

export function makeTransportProbe(parts: ProbeParts): TransportProbe {
  const { named, log } = parts
  let timer: NodeJS.Timeout | undefined
  let asking = false
  let askedAt = 0
  let soon = false
  /** Milliseconds: longer with every suspicion that proved wrong. */
  let retry = parts.intervals.pending
  let said = ''
  let doubted = ''
  let answered: RuntimeFacts | null = null
  const stopped = new AbortController()

  const say = (why: string | null): void => {
    parts.readiness.set('upstream', why)
    if (why !== null && why !== said) log.warn({ pending: why }, 'waiting for the upstream')
    said = why ?? ''
  }

  const doubt = (why: string): void => {
    if (doubted === why) return
    doubted = why
    log.warn({ detail: why }, `upstream.transport says ${named}, but the upstream answers otherwise`)
  }

  const met = (now: RuntimeFacts, version: string): void => {
    const before = answered
    const invalidations = JSON.stringify(before) !== JSON.stringify(now)
    if (before !== null && before.transport !== now.transport) {
      log.warn({ from: before.transport, to: now.transport }, 'the upstream has changed its transport')
    }
    if (invalidations || said !== '') {
      log.info({ transport: now.transport, mode: now.managed ? 'managed' : 'sse', version }, 'the upstream answers')
    }
    probe.facts = answered = now
    say(null)
    parts.onVersion(version)
    if (invalidations) parts.onNews(now)
  }

  const ask = async (): Promise<void> => {
    asking = true
    const suspected = soon
    soon = false
    const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)])
    const verdict = await askRuntime(parts, named, signal)
    if (stopped.signal.aborted) return
    const before = probe.facts
    const contradicts = verdict.kind === 'runtime' && named !== null && verdict.facts.transport !== named
    const believed = verdict.kind === 'unfit' && named !== null
    if (contradicts) {
      probe.facts = null
      say(`upstream.transport says ${named}, and the upstream is ${verdict.facts.transport}: name that, or auto`)
    } else if (verdict.kind === 'runtime') met(verdict.facts, verdict.version)
    else {
      // An unreachable upstream keeps its known transport: a request for it means nothing to the other transport.
      if (verdict.kind === 'unfit') probe.facts = believed ? (answered ?? assumedFacts(named)) : null
      if (believed) doubt(verdict.why)
      say(believed ? null : verdict.why)
    }
    const nothing = suspected && said === '' && probe.facts?.transport === before?.transport
    retry = nothing ? Math.min(2 * retry, parts.intervals.known) : parts.intervals.pending
    asking = false
    askedAt = performance.now()
    askLater()
  }

  /** Callers can cause suspicious answers as often as they like; the gateway does not ask as often. */
  const askLater = (): void => {
    const pause = said !== '' ? parts.intervals.pending : soon ? retry : parts.intervals.known
    clearTimeout(timer)
    timer = setTimeout(() => void ask(), Math.max(0, askedAt + pause - performance.now()))
  }

  const probe = {
    facts: named === null ? null : assumedFacts(named),
    suspect: () => {
      if (soon || stopped.signal.aborted) return
      soon = true
      // The awaited answer may be older than this suspicion: the probe asks again after it.
      if (!asking) askLater()
    },
    start: async () => {
      if (named === null) say('the upstream has not been asked yet')
      await ask()
    },
    stop: () => {
      stopped.abort()
      clearTimeout(timer)
    },
  }
  return probe
}

export type AskRuntimeParts = Pick<ProbeParts, 'upstream' | 'basePath' | 'headers'>

/** @param named the transport to try first; by default multi-route */
export async function askRuntime(parts: AskRuntimeParts, named: Transport | null, signal: AbortSignal): Promise<Verdict> {
  const order = named === 'single-route' ? TRANSPORTS.toReversed() : TRANSPORTS
  const tried: string[] = []
  for (const transport of order) {
    const answer = await askAs(transport, parts, signal)
    if (answer.kind !== 'no') return answer
    tried.push(answer.why)
  }
  return {
    kind: 'unfit',
    why: `${tried.join(', ')}: neither a multi-route nor a single-route runtime; is upstream.basePath right?`,
  }
}

/** `no`: the upstream does not speak this transport. */
async function askAs(
  transport: Transport,
  { upstream, basePath, headers }: AskRuntimeParts,
  signal: AbortSignal,
): Promise<Verdict | { readonly kind: 'no'; readonly why: string }> {
  const request = upstreamRequest(assumedFacts(transport), basePath, {
    descriptor: INFO,
    headers: { ...headers, accept: 'application/json', 'accept-encoding': 'identity' },
  })
  const question = `${request.method} ${request.target}${transport === 'single-route' ? ' {"method":"info"}' : ''}`
  const answer = await upstream.send(request, signal)
  if (answer.outcome === 'failed') return { kind: 'away', why: `${question} got no answer (${answer.detail})` }
  const bytes = await collect(answer.body, MAX_INFO_BYTES)
  const why = `${question} answered ${answer.status}`
  if (answer.status === 401 || answer.status === 403) {
    return { kind: 'unfit', why: `${why}: name upstream.transport, or give upstream.headers a credential` }
  }
  // The upstream is there, and has no answer now (RFC 9110 §15.5.9, RFC 6585 §4).
  if (answer.status >= 500 || answer.status === 408 || answer.status === 429) return { kind: 'away', why }
  if (bytes === 'broke-off') return { kind: 'away', why: `${question} broke off in its answer` }
  const info = answer.status === 200 && bytes !== 'too-large' ? readRuntimeInfo(jsonOf(bytes)) : null
  if (info !== null) {
    const { version, ...said } = info
    return { kind: 'runtime', facts: { transport, ...said }, version }
  }
  return { kind: 'no', why: answer.status === 200 ? `${why} without the "version" and "agents" of a runtime` : why }
}
