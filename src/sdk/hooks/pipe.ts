/** Sends requests to the gateway over an in-process connection: with the HTTP parser and limits of the network. */
import { request as ask, type IncomingMessage } from 'node:http'
import { duplexPair, Readable, type Duplex, type Writable } from 'node:stream'

/** Fields about the caller's connection (RFC 9110 §7.6.1), which is not this one. */
// oxfmt-ignore
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  'connection', 'content-length', 'expect', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade',
])

/** Used for every caller: hooks do not get the address (RFC 6890 §2.2.2: no host has this one). */
const NO_ADDRESS = '0.0.0.0'

/** Statuses of answers without a body, which a `Response` must not have either (Fetch §2.2.3). */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/** `accept` takes the gateway's end. @throws Error if the connection breaks before an answer, as when the caller disconnects */
export async function askOver(accept: (connection: Duplex) => void, request: Request): Promise<Response> {
  const body = await bodyOf(request)
  const [near, far] = connectionPair()
  accept(far)
  const { pathname, search, host } = new URL(request.url)
  const headers: Record<string, string> = { host }
  for (const [name, value] of request.headers) if (!OF_THE_CONNECTION.has(name)) headers[name] = value
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = ask(
      {
        createConnection: () => near,
        method: request.method,
        path: `${pathname}${search}`,
        headers: { ...headers, ...framingOf(body, request.headers) },
        signal: request.signal,
      },
      resolve,
    )
    outgoing.on('error', reject)
    // A body with another length than stated must not become a second request on the connection.
    Object.assign(outgoing, { strictContentLength: true })
    if (body === null) outgoing.end()
    else pour(body, outgoing).catch(() => outgoing.destroy())
  })
  return responseOf(answer)
}

type Pieces = AsyncGenerator<Uint8Array, void, void>

/** Null without a body. Node adapters give every POST a stream: without a header, only its end tells. */
async function bodyOf({ body, headers }: Request): Promise<Pieces | null> {
  if (body === null) return null
  const pieces = piecesOf(body)
  if (Number(headers.get('content-length') ?? 0) > 0 || headers.has('transfer-encoding')) return pieces
  const first = await pieces.next()
  return first.done === true ? null : following(first.value, pieces)
}

/** Forwards the stated length, so that a body that is too long is refused before it arrives. */
function framingOf(body: Pieces | null, headers: Headers): Record<string, string> {
  const length = headers.get('content-length')
  if (body === null) return {}
  return length === null ? { 'transfer-encoding': 'chunked' } : { 'content-length': length }
}

async function* piecesOf(body: ReadableStream<Uint8Array>): Pieces {
  const reader = body.getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) if (read.value.length > 0) yield read.value
}

async function* following(first: Uint8Array, rest: Pieces): Pieces {
  yield first
  yield* rest
}

/** Reads the body to its end even after the answer: cancelling the stream of the runtime's node adapter can end the process. */
async function pour(pieces: Pieces, into: Writable): Promise<void> {
  for await (const piece of pieces) {
    if (into.destroyed || into.write(piece)) continue
    await new Promise<void>((resolve) => {
      const goOn = (): void => {
        into.off('drain', goOn).off('close', goOn)
        resolve()
      }
      into.on('drain', goOn).on('close', goOn)
    })
  }
  into.end()
}

function connectionPair(): readonly [Duplex, Duplex] {
  const [near, far] = duplexPair()
  Object.assign(far, { remoteAddress: NO_ADDRESS })
  near.once('close', () => far.destroy())
  far.once('close', () => near.destroy())
  return [near, far]
}

function responseOf(answer: IncomingMessage): Response {
  const { statusCode: status = 500, statusMessage: statusText = '' } = answer
  const headers = new Headers()
  for (const [name, values] of Object.entries(answer.headersDistinct)) {
    // A complete body keeps its length, so that the caller can detect missing bytes.
    if (name !== 'content-length' && (OF_THE_CONNECTION.has(name) || name === 'date')) continue
    for (const value of values ?? []) headers.append(name, value)
  }
  if (!WITHOUT_BODY.has(status)) return new Response(Readable.toWeb(answer), { status, statusText, headers })
  answer.resume()
  return new Response(null, { status, statusText, headers })
}
