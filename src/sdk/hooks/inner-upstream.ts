/** The runtime of this process as an upstream: calls its handler without a network. */
import { Readable } from 'node:stream'
import { refuse } from '../../core/reasons.ts'
import { streamedBody } from '../../http/upstream/answer-body.ts'
import {
  BodyTooLarge,
  type Upstream,
  type UpstreamAnswer,
  type UpstreamFailure,
  type UpstreamRequest,
} from '../../http/upstream/upstream.ts'

/** A name that is never assigned (RFC 2606 §2): the runtime uses only the path. */
const NOWHERE = 'http://runtime.invalid'

/** `headersTimeout`: current limit in milliseconds until the answer begins; 0 for none. */
export function innerUpstream(handle: (request: Request) => Promise<Response>, headersTimeout: () => number): Upstream {
  return {
    // No listener and no closure of it may refer to the request: they live as long as the answer, and would keep its body.
    send(request, signal) {
      const { promise, resolve } = Promise.withResolvers<UpstreamAnswer | UpstreamFailure>()
      const away = new AbortController()
      const give = (outcome: UpstreamAnswer | UpstreamFailure): void => {
        clearTimeout(late)
        resolve(outcome)
      }
      // A caller that stopped waiting needs nothing that still arrives.
      const stop = (reason: 'caller-left' | 'upstream-timeout'): void => {
        away.abort()
        give(failed(reason, reason))
      }
      const timeout = headersTimeout()
      const late = timeout === 0 ? undefined : setTimeout(() => stop('upstream-timeout'), timeout)
      if (signal.aborted) give({ ...failed('caller-left', 'caller-left'), maybeSent: false })
      else if (request.mayBegin?.() === false) give({ ...failed('caller-left', 'not-begun'), maybeSent: false })
      else {
        signal.addEventListener('abort', () => stop('caller-left'))
        void answered(handle, request, away).then(give)
      }
      return promise
    },
    retire: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
}

function failed(
  reason: 'body-too-large' | 'caller-left' | 'upstream-timeout' | 'upstream-broke-off',
  detail: string,
): UpstreamFailure {
  return { outcome: 'failed', refusal: refuse(reason), maybeSent: true, detail }
}

async function answered(
  handle: (request: Request) => Promise<Response>,
  { method, target, headers, body }: UpstreamRequest,
  away: AbortController,
): Promise<UpstreamAnswer | UpstreamFailure> {
  const { signal } = away
  let fault: unknown
  if (body instanceof Readable) body.once('error', (error: unknown) => (fault = error))
  try {
    const response = await handle(new Request(`${NOWHERE}${target}`, { method, signal, headers, ...bodyOf(body, headers) }))
    // `Response.error()`: no answer at all (Fetch §2.2.6).
    if (response.status < 200) return failed('upstream-broke-off', 'no-status')
    // The runtime answers a broken body with a response of its own.
    if (fault instanceof BodyTooLarge) {
      await response.body?.cancel()
      return failed('body-too-large', 'body-too-large')
    }
    const answer = response.body === null ? Readable.from([]) : Readable.fromWeb(response.body)
    // Destroying it may make the runtime report an error to a body without listeners.
    answer.on('error', () => {})
    // The runtime keeps a copy of each answer for its middleware: cancelling this one ends nothing.
    answer.once('close', () => away.abort())
    return {
      outcome: 'answered',
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: streamedBody(answer),
    }
  } catch (error) {
    return failed('upstream-broke-off', error instanceof Error ? error.name : 'unknown')
  }
}

function bodyOf(body: UpstreamRequest['body'], headers: UpstreamRequest['headers']): object {
  if (body === undefined) return {}
  if (body instanceof Readable) return { body: Readable.toWeb(body), duplex: 'half' }
  const bytes = Buffer.concat(body)
  return { body: bytes, headers: { ...headers, 'content-length': String(bytes.length) } }
}
