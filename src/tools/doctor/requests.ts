/** HTTP requests of the doctor: to the upstream over the gateway's connection, and to everything else as a client. */
import { request, type Dispatcher } from 'undici'
import { classify, type RouteDescriptor } from '../../core/route/classify.ts'
import type { UpstreamAnswerHeaders } from '../../core/wire/headers.ts'
import { isObject, type Json, type JsonObject } from '../../core/json/read.ts'
import type { RuntimeFacts } from '../../core/route/transport.ts'
import { upstreamRequest, type UpstreamRequest } from '../../http/upstream/upstream.ts'
import { collect, streamedBody } from '../../http/upstream/answer-body.ts'
import type { Subject } from './subject.ts'
import { originOf } from '../../config/health-listener.ts'
import { mountsOf } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import { problem, notChecked, ok, seconds, warning, type Result } from './finding.ts'

export interface HttpAnswer {
  readonly status: number
  readonly headers: UpstreamAnswerHeaders
  /** Empty for an event stream, which the doctor closes at once. */
  readonly text: string
}

/** No answer. The message is an error code and never contains sent data. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

const MAX_BYTES = 4 * 1024 * 1024

export function routeOf(method: string, ...segments: readonly string[]): RouteDescriptor {
  return classify(method, [...segments], new Map()) as RouteDescriptor
}

/** @throws NoAnswer */
export async function askUpstream({ upstream }: Subject, asked: UpstreamRequest, signal: AbortSignal): Promise<HttpAnswer> {
  const answer = await upstream.send(asked, signal)
  if (answer.outcome === 'failed') throw new NoAnswer(answer.detail)
  const { status, headers, body } = answer
  if (isStream(headers)) {
    body.destroy()
    return { status, headers, text: '' }
  }
  const bytes = await collect(body, MAX_BYTES)
  return { status, headers, text: typeof bytes === 'string' ? '' : bytes.toString('utf8') }
}

export function askInfo(
  subject: Subject,
  facts: RuntimeFacts,
  signal: AbortSignal,
  headers: Readonly<Record<string, string>> = subject.headers,
): Promise<HttpAnswer> {
  const asked = { descriptor: routeOf('GET', 'info'), headers: { ...headers, accept: 'application/json' } }
  return askUpstream(subject, upstreamRequest(facts, subject.mount.basePath, asked), signal)
}

interface Asked {
  readonly method?: 'GET' | 'POST' | 'OPTIONS'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Json
  /** A body that JSON.stringify would not write. */
  readonly text?: string
}

/**
 * Follows no redirects: a client would not send its token there.
 * @param dispatcher for a server that Node's authorities do not know
 * @throws NoAnswer
 */
export async function ask(
  url: string,
  { method = 'GET', headers = {}, body, text = body === undefined ? undefined : JSON.stringify(body) }: Asked,
  signal: AbortSignal,
  dispatcher?: Dispatcher,
): Promise<HttpAnswer> {
  try {
    const answer = await request(url, {
      method,
      headers: { ...headers, ...(text === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(text === undefined ? {} : { body: text }),
      ...(dispatcher === undefined ? {} : { dispatcher }),
      signal,
    })
    const bytes = isStream(answer.headers) ? 'too-large' : await collect(streamedBody(answer.body), MAX_BYTES)
    if (typeof bytes === 'string') answer.body.on('error', () => {}).destroy()
    return {
      status: answer.statusCode,
      headers: answer.headers,
      text: typeof bytes === 'string' ? '' : bytes.toString('utf8'),
    }
  } catch (error) {
    throw new NoAnswer(codeOf(error))
  }
}

/** The error code of a failure, never its text, which may contain sent data. */
export function codeOf(error: unknown): string {
  if (error instanceof NoAnswer) return error.message
  if (!(error instanceof Error)) return 'failed'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

export function isStream(headers: UpstreamAnswerHeaders): boolean {
  return String(headers['content-type']).toLowerCase().startsWith('text/event-stream')
}

export function objectIn({ text }: HttpAnswer): JsonObject | null {
  try {
    const value = JSON.parse(text) as Json
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

/** The address of a listener as this machine can reach it; null if its port is not known. */
export function healthOrigin(config: Config): string | null {
  return originOf(config.health)
}

export function listenerOrigin(config: Config): string | null {
  return config.listen.fd === undefined ? originOf(config.listen) : null
}

/** The `runtimeUrl` of a frontend. The operator's address is that of the first upstream; the others are derived from it. */
export function publicBase({ config, mount, wishes }: Pick<Subject, 'config' | 'mount' | 'wishes'>): string | null {
  const isFirst = mount.key === mountsOf(config)[0].key
  if (wishes.url !== null && isFirst) return wishes.url
  const listening = wishes.url === null ? listenerOrigin(config) : new URL(wishes.url).origin
  return listening === null ? null : `${listening}${mount.publicPath}`
}

export const PORT_ZERO = 'its port is 0 or a socket of systemd, so its address is not known'

/** The operator should know of this difference, though no token fails because of it. */
const NOTICEABLE_MS = 5000

/**
 * @param whose whose clock it is, as a phrase of the message
 * @param local when the answer arrived by the local clock, in milliseconds
 * @param tolerance the configured clockTolerance, in milliseconds
 */
export function judgeClock(whose: string, headers: UpstreamAnswerHeaders, local: number, tolerance: number): Result {
  const date = Date.parse(String(headers['date']))
  if (Number.isNaN(date)) return notChecked(`${whose} sends no Date header`)
  if (headers['age'] !== undefined) return notChecked(`the answer of ${whose} is from a cache`)
  // Date has whole seconds, rounded down.
  const ahead = local - (date + 500)
  const off = Math.abs(ahead)
  if (off <= NOTICEABLE_MS) return ok(`the clock here agrees with that of ${whose}`)
  const message = `the clock here is ${seconds(off)} ${ahead > 0 ? 'ahead of' : 'behind'} that of ${whose}`
  const remedy = 'synchronize both clocks with NTP'
  return off > tolerance
    ? problem(`${message}, more than authentication.clockTolerance (${seconds(tolerance)})`, remedy)
    : warning(message, remedy)
}
