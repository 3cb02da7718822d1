/** Sends requests to the upstream, one attempt each: what the upstream may have read is never sent again. */
import { Readable } from 'node:stream'
import { createSecureContext } from 'node:tls'
import { type Dispatcher, Client } from 'undici'
import { refuse, type Refusal } from '../../core/reasons.ts'
import type { UpstreamAnswerHeaders } from '../../core/wire/headers.ts'
import type { Json } from '../../core/json/read.ts'
import { ArrivingBody, type AnswerBody } from './answer-body.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import { wireForm, type RuntimeFacts } from '../../core/route/transport.ts'
import type { UpstreamTls } from '../../tls/settings.ts'

export interface UpstreamRequest {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  /** In pieces, so that nothing large is copied between others; or a stream. Sending may empty them: they are sent once. */
  readonly body?: readonly Uint8Array[] | Readable | undefined
  /** True where the answer may last: the gateway then does not keep what it sent until the answer ends. */
  readonly lasting?: boolean
  /** Asked once connected: connecting may take as long as `timeouts.connect`. If false, nothing is sent. */
  readonly mayBegin?: (() => boolean) | undefined
}

export interface UpstreamAnswer {
  readonly outcome: 'answered'
  readonly status: number
  readonly headers: UpstreamAnswerHeaders
  /** Destroying it closes the upstream request. */
  readonly body: AnswerBody
}

export interface UpstreamFailure {
  readonly outcome: 'failed'
  readonly refusal: Refusal
  /** False if certainly nothing of the request was sent. */
  readonly maybeSent: boolean
  /** True where `mayBegin` was false: the request has to be decided again. */
  readonly isOutdated?: true
  /** For the log: an error code, never an address or a header. */
  readonly detail: string
}

/** Durations in milliseconds, 0 for none. */
export interface UpstreamOptions {
  readonly url: string
  readonly tls?: UpstreamTls
  readonly timeouts: { readonly connect: number; readonly headers: number; readonly body: number }
}

export interface Upstream {
  send(request: UpstreamRequest, signal: ClientDisconnect): Promise<UpstreamAnswer | UpstreamFailure>
  /** Takes nothing new, and closes once the requests under way are over. */
  retire(): Promise<void>
  close(): Promise<void>
}

/** An AbortSignal fits wherever this type is required. */
export interface ClientDisconnect {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** An AbortController costs more than many a request's decision. */
export class ClientDisconnectSignal implements ClientDisconnect {
  aborted = false
  readonly #listeners: (() => void)[] = []

  abort(): void {
    this.aborted = true
    for (const listener of this.#listeners.splice(0)) listener()
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener)
    if (at !== -1) this.#listeners.splice(at, 1)
  }
}

export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge'
}

/** Must not depend on defaults that may change with a version (docs/reference/timeouts.md). Durations in milliseconds. */
const FIXED = {
  // More than runtimes send in a head; a larger head is not an answer.
  maxHeaderSize: 16 * 1024,
  // Answers are bounded where the gateway reads them; an answer that passes through has no bound.
  maxResponseSize: -1,
  maxRequestsPerClient: 0,
  strictContentLength: true,
  // A connection that its other end is about to close loses the request sent on it, and no request is sent twice.
  // Servers of runtimes close after 5 s of silence (Node, uvicorn), and not all of them announce that.
  // So no connection is used again after 1 s, or 4 s before the announced time.
  // Beyond a second, undici measures with a clock that stops while the process is stopped.
  keepAliveTimeout: 1000,
  keepAliveMaxTimeout: 600_000,
  keepAliveTimeoutThreshold: 4000,
}

/** Of several addresses, each but the last has so long to connect. Keep-alive notices a machine that is gone. */
const CONNECTING = {
  autoSelectFamily: true,
  autoSelectFamilyAttemptTimeout: 250,
  keepAlive: true,
  keepAliveInitialDelay: 60_000,
}

export function openUpstream(options: UpstreamOptions): Upstream {
  const connections = connectionsFor(options)
  return {
    send(request, signal) {
      const { promise, resolve } = Promise.withResolvers<UpstreamAnswer | UpstreamFailure>()
      const sent = { path: request.target, method: request.method, ...written(request) }
      // The handler lives as long as the answer, and would keep the whole request, with its body.
      const { mayBegin } = request
      const connection = connections.take()
      let maybeSent = false
      let body: ArrivingBody | undefined
      let abort: (() => void) | undefined
      const onAbort = (): void => abort?.()
      const handler: Dispatcher.DispatchHandler = {
        onRequestStart(controller) {
          abort = () => controller.abort(new Error('the caller left'))
          if (signal.aborted || mayBegin?.() === false) abort()
          else {
            maybeSent = true
            signal.addEventListener('abort', onAbort)
          }
        },
        onResponseStart(controller, status, headers) {
          // 1xx answers precede the final answer (RFC 9110 §15.2).
          if (status < 200) return
          // Two buffers for each line, which undici would keep until the answer is over.
          controller.rawHeaders = null
          body = new ArrivingBody(controller)
          resolve({ outcome: 'answered', status, headers, body })
        },
        onResponseData(_controller, chunk) {
          body?.push(chunk)
        },
        onResponseEnd() {
          signal.removeEventListener('abort', onAbort)
          connections.give(connection)
          body?.finish()
        },
        onResponseError(_controller, error) {
          signal.removeEventListener('abort', onAbort)
          connections.drop(connection)
          if (body === undefined) {
            const refusal = signal.aborted ? refuse('caller-left') : refusalOf(error, { maybeSent })
            resolve({ outcome: 'failed', refusal, maybeSent, detail: codeOf(error) })
          } else body.fail(error)
        },
      }
      connection.dispatch(sent, handler)
      return promise
    },
    retire: () => connections.close(),
    close: () => connections.destroy(),
  }
}

/** Nothing caps the number of connections: each open stream holds one. */
export function connectionsFor({ url, tls, timeouts }: UpstreamOptions): Connections {
  const { servername, ...files } = tls ?? {}
  // The environment cannot switch verification off (NODE_TLS_REJECT_UNAUTHORIZED).
  const secure = url.startsWith('https:')
    ? { secureContext: createSecureContext(files), servername, rejectUnauthorized: true }
    : {}
  return connectionsTo(url, {
    pipelining: 1,
    // One request at a time on a connection, in the only form that runtimes speak.
    allowH2: false,
    connect: { timeout: timeouts.connect, ...CONNECTING, ...secure },
    headersTimeout: timeouts.headers,
    bodyTimeout: timeouts.body,
    ...FIXED,
  })
}

/** Undici does not know the length of a body in pieces. */
function written({ headers, body, lasting }: UpstreamRequest): Pick<Dispatcher.DispatchOptions, 'headers' | 'body'> {
  if (body === undefined) return { headers }
  if (body instanceof Readable) return { headers, body }
  let length = 0
  for (const { buffer, length: bytes } of body) {
    if (buffer instanceof ArrayBuffer && buffer.detached) throw new Error('the pieces of a body are sent once')
    length += bytes
  }
  const [first] = body
  if (first !== undefined && body.length === 1 && lasting !== true) return { headers, body: first }
  // Undici takes an iterable as it takes a stream ("DispatchOptions"), but its types do not say so.
  return { headers: { ...headers, 'content-length': String(length) }, body: handedOver([...body]) as unknown as Readable }
}

/** Undici holds the sent body until the answer is over: this releases each piece. */
function* handedOver(pieces: Uint8Array[]): Iterable<Uint8Array> {
  // A short body is one piece, and waits for nothing.
  const isShort = pieces.length === 1
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift())
    yield isShort || piece.length < WORTH_MOVING ? piece : renewed(piece)
}

/** In bytes. Pieces have up to 64 KiB, or 16 KiB with TLS. */
const WORTH_MOVING = 4096

/**
 * Moves a piece to an object that V8 has just made; the given one is empty from then on. A piece that has waited is in V8's old
 * generation, which only a full collection frees. That takes longer than the request.
 */
function renewed(piece: Uint8Array): Uint8Array {
  const { buffer } = piece
  // Others may have the rest of a buffer.
  return piece.length === buffer.byteLength && buffer instanceof ArrayBuffer ? new Uint8Array(buffer.transfer()) : piece
}

function refusalOf(error: Error, { maybeSent }: Pick<UpstreamFailure, 'maybeSent'>): Refusal {
  if (error instanceof BodyTooLarge) return refuse('body-too-large')
  switch (codeOf(error)) {
    case 'UND_ERR_HEADERS_TIMEOUT':
      return refuse('upstream-timeout')
    case 'UND_ERR_SOCKET':
    case 'ECONNRESET':
    case 'EPIPE':
      return refuse('upstream-broke-off')
    default:
      // Once connected, the remaining errors are answers that HTTP does not allow.
      return refuse(maybeSent ? 'upstream-answer-unreadable' : 'upstream-unreachable')
  }
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

/** Undefined if the answer is not JSON. */
export function jsonOf(bytes: Buffer): Json | undefined {
  try {
    return JSON.parse(bytes.toString('utf8')) as Json
  } catch {
    return undefined
  }
}

/** Connections to the upstream, the last used first. An undici pool would search thousands of busy ones for each request. */
export interface Connections {
  take(): Client
  give(connection: Client): void
  drop(connection: Client): void
  readonly size: number
  close(): Promise<void>
  destroy(): Promise<void>
}

export function connectionsTo(url: string, options: Client.Options): Connections {
  const all = new Set<Client>()
  // The last used connection is at the end.
  const idle: Client[] = []
  let closing = false

  const drop = (client: Client): void => {
    if (!all.delete(client)) return
    void client.destroy()
  }
  const open = (): Client => {
    const client = new Client(url, options)
    all.add(client)
    // The idle connection was silent for too long or closed. A request that uses it just then fails by itself.
    client.on('disconnect', () => {
      const at = idle.indexOf(client)
      if (at === -1) return
      idle.splice(at, 1)
      drop(client)
    })
    if (closing) void client.close()
    return client
  }
  const each = async (step: (client: Client) => Promise<void>): Promise<void> => {
    closing = true
    idle.length = 0
    await Promise.all([...all].map(step))
  }

  return {
    take: () => idle.pop() ?? open(),
    give(client) {
      if (closing || client.destroyed || !all.has(client)) all.delete(client)
      else idle.push(client)
    },
    drop,
    get size() {
      return all.size
    },
    close: () => each((client) => client.close()),
    destroy: () => each((client) => client.destroy()),
  }
}

export interface Question {
  readonly descriptor: RouteDescriptor
  readonly headers: Readonly<Record<string, string>>
  readonly query?: RouteDescriptor['query'] | undefined
  /** A recording is a stream, which only a multi-route upstream takes. A large body comes in pieces. */
  readonly body?: Buffer | readonly Uint8Array[] | Readable | undefined
  readonly mayBegin?: (() => boolean) | undefined
}

/** @throws Error for an operation that the upstream does not have */
export function upstreamRequest(
  upstream: RuntimeFacts,
  basePath: string,
  { descriptor, headers, query, body, mayBegin }: Question,
): UpstreamRequest {
  const { method, target, envelope } = wireForm(upstream, basePath, descriptor, query)
  const pieces = Buffer.isBuffer(body) ? [body] : body
  const lasting = descriptor.route.streams === true
  if (envelope === null) return { method, target, headers, lasting, body: pieces, mayBegin }
  if (pieces instanceof Readable) throw new Error('a recording that streams does not fit into an envelope')
  const open = JSON.stringify(envelope).slice(0, -1)
  return {
    method,
    target,
    lasting,
    mayBegin,
    headers: { ...headers, 'content-type': 'application/json' },
    // The body is JSON already, and may be large: the gateway neither writes it again nor copies it.
    body: [Buffer.from(open), ...(pieces === undefined ? [] : [Buffer.from(',"body":'), ...pieces]), Buffer.from('}')],
  }
}
