/**
 * Asks the gateway over a connection that never leaves the process: it reads and answers HTTP as it does on the network, with
 * its parser and its limits, so that nothing is decided in another way.
 */
import { request as ask, type IncomingMessage } from 'node:http'
import { duplexPair, Readable, type Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Fields that are about a connection, which this is another one than the caller's (RFC 9110 §7.6.1). */
// prettier-ignore
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  'connection', 'content-length', 'expect', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade',
])

/** Statuses of answers without a body, which a `Response` must not have either (Fetch §2.2.3). */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * Asks it.
 * @param accept takes the gateway's end of a connection
 * @param request what a caller has sent
 * @throws Error if the connection breaks off before an answer, as it does when the caller leaves
 */
export async function askOver(accept: (connection: Duplex) => void, request: Request): Promise<Response> {
  const [near, far] = connectionPair()
  accept(far)
  const { pathname, search, host } = new URL(request.url)
  const headers: Record<string, string> = { host }
  for (const [name, value] of request.headers) if (!OF_THE_CONNECTION.has(name)) headers[name] = value
  const hasBody = request.body !== null
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = ask(
      {
        createConnection: () => near,
        method: request.method,
        path: `${pathname}${search}`,
        headers: { ...headers, ...(hasBody ? { 'transfer-encoding': 'chunked' } : {}) },
        signal: request.signal,
      },
      resolve,
    )
    outgoing.on('error', reject)
    if (request.body === null) outgoing.end()
    // An answer may come before the whole body was read: what is left of it then fails, and is wanted no more.
    else pipeline(Readable.fromWeb(request.body), outgoing).catch(() => {})
  })
  return responseOf(answer)
}

/** Two ends of a connection; when one of them is gone, so is the other. */
function connectionPair(): readonly [Duplex, Duplex] {
  const [near, far] = duplexPair()
  near.once('close', () => far.destroy())
  far.once('close', () => near.destroy())
  return [near, far]
}

function responseOf(answer: IncomingMessage): Response {
  const status = answer.statusCode ?? 500
  const headers = new Headers()
  for (const [name, values] of Object.entries(answer.headersDistinct)) {
    if (OF_THE_CONNECTION.has(name) || name === 'date') continue
    for (const value of values ?? []) headers.append(name, value)
  }
  if (!WITHOUT_BODY.has(status)) return new Response(Readable.toWeb(answer), { status, headers })
  answer.resume()
  return new Response(null, { status, headers })
}
