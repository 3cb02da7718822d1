/** A caller that writes its own bytes, and reads what comes back as it comes. */
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { Transport } from '../../src/core/route/transport.ts'
import { dial } from './dial.ts'
import { enveloped } from './enveloped.ts'
import { until } from './until.ts'

/** A connection to a gateway. */
export interface RawConnection {
  readonly socket: Socket
  /** Everything that came so far. */
  text(): string
  write(bytes: string | Uint8Array): void
  /** Waits until what came holds this, and gives all that came. */
  until(part: string | RegExp): Promise<string>
  /** Waits until the gateway has closed the connection, and gives all that came. */
  ended(): Promise<string>
  /** True once the connection is closed. */
  isClosed(): boolean
  destroy(): void
}

/** Opens a connection to a base such as `http://127.0.0.1:8080`, or `https:`. */
export async function openRaw(base: string, options?: ConnectionOptions): Promise<RawConnection> {
  const socket = await dial(base, options)
  let text = ''
  let closed = false
  socket.on('data', (chunk) => (text += chunk.toString('latin1')))
  socket.on('error', () => {})
  socket.on('close', () => (closed = true))
  return {
    socket,
    text: () => text,
    write: (bytes) => void socket.write(bytes),
    async until(part) {
      await until(() => closed || (typeof part === 'string' ? text.includes(part) : part.test(text)))
      return text
    },
    async ended() {
      await until(() => closed)
      return text
    },
    isClosed: () => closed,
    destroy: () => socket.destroy(),
  }
}

/** Sends bytes and gives everything that came until the gateway closed. */
export async function sendRaw(base: string, bytes: string | Uint8Array): Promise<string> {
  const connection = await openRaw(base)
  connection.write(bytes)
  return connection.ended()
}

/** The lines of a request's head, with the empty one. */
export function head(...lines: string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** Pieces of a body as chunks (RFC 9112 §7.1), without the one that ends it. */
export function chunked(pieces: readonly string[]): string {
  return pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('')
}

/** Status, headers and body of the first answer in a text. */
export function firstAnswer(text: string): { readonly status: number; readonly headers: Headers; readonly body: string } {
  const [top = '', ...rest] = text.split('\r\n\r\n')
  const [status = '', ...lines] = top.split('\r\n')
  const headers = new Headers()
  for (const line of lines) headers.append(line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim())
  return { status: Number(status.split(' ')[1]), headers, body: rest.join('\r\n\r\n') }
}

/** A request that a test writes by hand; what is left out is as a good client would write it. */
export interface RawRequest {
  /** `GET` without a body, `POST` with one. */
  readonly method?: string
  /** The request target, as it stands on the wire: nothing of it is tidied. */
  readonly target: string
  /** `HTTP/1.1`; the empty string for none (HTTP/0.9). */
  readonly version?: string
  /** The value of `Host`, or null for none. */
  readonly host?: string | null
  readonly token?: string
  /** More header lines, in this order, after the usual ones. */
  readonly lines?: readonly string[]
  /** With it come a JSON content type and its length, unless `framing` says otherwise. */
  readonly body?: string | Uint8Array
  /** The header lines that say what the body is and where it ends, in place of the usual two. */
  readonly framing?: readonly string[]
  /** True to leave the connection open after the answer. */
  readonly keepAlive?: boolean
  /**
   * That of the client; `multi-route` by default. A request that says in its own words what its body is and where it ends
   * (`framing`) stays as it is.
   */
  readonly transport?: Transport
  /** The public base path, where it is not the usual one. */
  readonly base?: string
}

/** The bytes of a request. Text is written in Latin-1, a character a byte, but a body, which is UTF-8. */
export function requestBytes(plain: RawRequest): Buffer {
  const request = { ...plain, ...envelopeOf(plain) }
  const { body, version = 'HTTP/1.1', host = 'gateway.example', token, lines = [] } = request
  const payload = typeof body === 'string' ? Buffer.from(body, 'utf8') : Buffer.from(body ?? [])
  const framing = body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${payload.length}`]
  const start = [request.method ?? (body === undefined ? 'GET' : 'POST'), request.target, version].filter((part) => part !== '')
  const top = head(
    start.join(' '),
    ...(host === null ? [] : [`Host: ${host}`]),
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...lines,
    ...(request.framing ?? framing),
    ...(request.keepAlive === true ? [] : ['Connection: close']),
  )
  return Buffer.concat([Buffer.from(top, 'latin1'), payload])
}

/** What changes where the request is written as an envelope. */
function envelopeOf(plain: RawRequest): Partial<RawRequest> {
  const { transport = 'multi-route', framing, target, body, base } = plain
  if (transport === 'multi-route' || framing !== undefined) return {}
  const envelope = enveloped({ method: plain.method ?? (body === undefined ? 'GET' : 'POST'), target, body }, base)
  return envelope === null ? {} : { method: 'POST', ...envelope }
}

/** Sends a request on a connection of its own and gives the first answer to it. */
export async function ask(base: string, request: RawRequest): Promise<ReturnType<typeof firstAnswer>> {
  return firstAnswer(await sendRaw(base, requestBytes(request)))
}
