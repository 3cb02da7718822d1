/** An issuer's address on this machine: metadata and a key set, and whatever else a test wants it to answer. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { Part } from './signing.ts'

/** An answer of the server. */
export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, text and bytes as they are. */
  readonly body?: unknown
  /** True to close the connection without an answer. */
  readonly hangUp?: boolean
}

/** A request as it came. */
export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A server of keys. */
export interface KeyServer {
  readonly url: string
  /** The paths that were fetched, in order. */
  readonly fetched: string[]
  /** The same requests in full. */
  readonly asked: Asked[]
  /** What is answered by path; may be changed at any time. A function is asked for its answer. */
  readonly answers: Map<string, Answer | (() => Promise<Answer>)>
  /** Sets the key set. */
  keys(...jwks: readonly Part[]): void
}

/**
 * Starts the server with metadata that names `/jwks`, and an empty key set.
 * @param tls its private key and certificate in PEM, for https
 */
export async function startKeyServer(
  t: Pick<Test, 'teardown'>,
  tls?: { readonly key: string; readonly cert: string },
): Promise<KeyServer> {
  const answers: KeyServer['answers'] = new Map()
  const fetched: string[] = []
  const asked: Asked[] = []
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? ''
    fetched.push(path)
    const sent: Buffer[] = []
    for await (const chunk of request) sent.push(chunk as Buffer)
    asked.push({ method: request.method ?? '', path, headers: request.headers, body: Buffer.concat(sent).toString() })
    const known = answers.get(path) ?? { status: 404 }
    const { status = 200, headers = {}, body = '', hangUp } = typeof known === 'function' ? await known() : known
    if (hangUp === true) return void response.destroy()
    response.writeHead(status, headers).end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body))
  }
  const listener = (request: IncomingMessage, response: ServerResponse): void => void respond(request, response)
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`
  const keys = (...jwks: readonly Part[]): void => void answers.set('/jwks', { body: { keys: jwks } })
  answers.set('/.well-known/openid-configuration', { body: { issuer: url, jwks_uri: `${url}/jwks` } })
  keys()
  return { url, fetched, asked, answers, keys }
}
