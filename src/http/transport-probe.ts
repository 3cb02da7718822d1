/**
 * Asks the upstream what it is. A single-route upstream takes an envelope on any path and would be wide open behind a
 * path classifier (contract §1.3), so until the upstream has shown that it is multi-route, nothing is forwarded.
 */
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { Logger } from '../observe/log.ts'
import { collect, type Upstream } from './upstream.ts'
import type { Readiness } from './readiness.ts'

/** What the upstream is known to be. */
export interface TransportState {
  /** True if requests may be forwarded. */
  known(): boolean
  /** `managed` where /info names the managed platform: its empty connect is a 204. */
  mode(): 'sse' | 'managed'
}

/** The probe. */
export interface TransportProbe extends TransportState {
  /** Begins to ask; resolves after the first answer or failure. */
  start(): Promise<void>
  stop(): void
}

/** What the probe works with. */
export interface ProbeParts {
  readonly upstream: Upstream
  readonly basePath: string
  /** The server's own headers: the probe has no caller. */
  readonly headers: Readonly<Record<string, string>>
  /** True if the configuration names the transport: then nothing waits for the answer. */
  readonly named: boolean
  readonly readiness: Readiness
  /** Called once, when the upstream first answers as a runtime does. */
  readonly onFirstAnswer: () => void
  readonly log: Logger
  /** Milliseconds between questions while the answer is awaited, and once it is known. */
  readonly intervals: { readonly pending: number; readonly known: number }
}

type Verdict =
  | { readonly kind: 'multi-route'; readonly managed: boolean }
  | { readonly kind: 'away'; readonly why: string }
  | { readonly kind: 'unfit'; readonly why: string }
  /** It has shown that it is single-route: whatever the configuration says, nothing is forwarded. */
  | { readonly kind: 'single-route'; readonly why: string }

/** An upstream that stalls in the middle of its answer is asked again. */
const PROBE_TIMEOUT_MS = 10_000
const MAX_INFO_BYTES = 4 * 1024 * 1024

/** Makes the probe. */
export function makeTransportProbe(parts: ProbeParts): TransportProbe {
  let multiRoute = parts.named
  let managed = false
  let timer: NodeJS.Timeout | undefined
  let said = ''
  let doubted = ''
  let answered = false
  const stopped = new AbortController()

  const say = (why: string | null): void => {
    parts.readiness.set('upstream', why)
    if (why === said || (why ?? '') === said) return
    said = why ?? ''
    if (why === null) parts.log.info({ transport: 'multi-route', mode: managed ? 'managed' : 'sse' }, 'the upstream answers')
    else parts.log.warn({ pending: why }, 'waiting for the upstream')
  }

  /** A transport that is named is believed, but not in silence. */
  const doubt = (why: string): void => {
    if (doubted === why) return
    doubted = why
    parts.log.warn({ detail: why }, 'upstream.transport says multi-route, and the upstream does not answer as one')
  }

  const ask = async (): Promise<void> => {
    const verdict = await probe(parts, AbortSignal.any([stopped.signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)]))
    if (stopped.signal.aborted) return
    if (verdict.kind === 'multi-route') {
      multiRoute = true
      managed = verdict.managed
      say(null)
      if (!answered) parts.onFirstAnswer()
      answered = true
    } else {
      const believed = parts.named && verdict.kind === 'unfit'
      // An upstream that is merely away keeps its standing: what the gateway writes is no envelope to any transport.
      if (verdict.kind !== 'away') multiRoute = believed
      if (believed) doubt(verdict.why)
      say(believed ? null : verdict.why)
    }
    const pending = verdict.kind !== 'multi-route' && !(verdict.kind === 'unfit' && parts.named)
    timer = setTimeout(() => void ask(), pending ? parts.intervals.pending : parts.intervals.known)
  }

  return {
    known: () => multiRoute,
    mode: () => (managed ? 'managed' : 'sse'),
    start: async () => {
      if (!parts.named) say('the upstream has not been asked yet')
      await ask()
    },
    stop: () => {
      stopped.abort()
      clearTimeout(timer)
    },
  }
}

async function probe(parts: ProbeParts, signal: AbortSignal): Promise<Verdict> {
  const target = `${parts.basePath}/info`
  const headers = { ...parts.headers, accept: 'application/json', 'accept-encoding': 'identity' }
  const answer = await parts.upstream.send({ method: 'GET', target, headers }, signal)
  if (answer.outcome === 'failed') return { kind: 'away', why: `GET ${target} got no answer (${answer.detail})` }
  const bytes = await collect(answer.body, MAX_INFO_BYTES)
  if (answer.status === 401 || answer.status === 403) {
    return {
      kind: 'unfit',
      why: `GET ${target} answered ${answer.status}: name upstream.transport, or give upstream.headers a credential`,
    }
  }
  if (answer.status === 404 || answer.status === 405) {
    const singleRoute = await probeSingleRoute(parts, signal)
    if (singleRoute !== null) return singleRoute
    return {
      kind: 'unfit',
      why: `GET ${target} answered ${answer.status}: a single-route upstream, which this version does not guard, or another basePath`,
    }
  }
  if (answer.status >= 500) return { kind: 'away', why: `GET ${target} answered ${answer.status}` }
  if (bytes === 'broke-off') return { kind: 'away', why: `GET ${target} broke off in its answer` }
  const info = readInfo(answer.status, bytes)
  if (info === null) {
    return { kind: 'unfit', why: `GET ${target} answered ${answer.status} without the "version" and "agents" of a runtime` }
  }
  return { kind: 'multi-route', managed: info['mode'] === 'intelligence' || isObject(info['intelligence']) }
}

/** A single-route runtime takes `{"method":"info"}` at its base path, where a multi-route one says 404 (contract §1.3). */
async function probeSingleRoute(parts: ProbeParts, signal: AbortSignal): Promise<Verdict | null> {
  const target = parts.basePath === '' ? '/' : parts.basePath
  const headers = {
    ...parts.headers,
    accept: 'application/json',
    'accept-encoding': 'identity',
    'content-type': 'application/json',
  }
  const body = Buffer.from('{"method":"info"}')
  const answer = await parts.upstream.send({ method: 'POST', target, headers, body }, signal)
  if (answer.outcome === 'failed') return null
  if (readInfo(answer.status, await collect(answer.body, MAX_INFO_BYTES)) === null) return null
  return {
    kind: 'single-route',
    why: `POST ${target} {"method":"info"} is answered: a single-route upstream, which this version does not guard`,
  }
}

/** What a runtime says of itself, or null for anything else. */
function readInfo(status: number, bytes: Buffer | 'too-large' | 'broke-off'): JsonObject | null {
  const info = status === 200 && typeof bytes !== 'string' ? parse(bytes) : undefined
  return isObject(info) && typeof info['version'] === 'string' && isObject(info['agents']) ? info : null
}

function parse(bytes: Buffer): Json | undefined {
  try {
    return JSON.parse(bytes.toString('utf8')) as Json
  } catch {
    return undefined
  }
}
