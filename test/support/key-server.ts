/** An issuer's address on this machine: metadata and a key set, and whatever else a test wants it to answer. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { Part } from './signing.ts'

/** An answer of the server. */
export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, text and bytes as they are. */
  readonly body?: unknown
}

/** A server of keys. */
export interface KeyServer {
  readonly url: string
  /** The paths that were fetched, in order. */
  readonly fetched: string[]
  /** What is answered by path; may be changed at any time. A function is asked for its answer. */
  readonly answers: Map<string, Answer | (() => Promise<Answer>)>
  /** Sets the key set. */
  keys(...jwks: readonly Part[]): void
}

/** Starts the server with metadata that names `/jwks`, and an empty key set. */
export async function startKeyServer(t: Test): Promise<KeyServer> {
  const answers: KeyServer['answers'] = new Map()
  const fetched: string[] = []
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? ''
    fetched.push(path)
    const known = answers.get(path) ?? { status: 404 }
    const { status = 200, headers = {}, body = '' } = typeof known === 'function' ? await known() : known
    response.writeHead(status, headers).end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body))
  }
  const server = createServer((request, response) => void respond(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const keys = (...jwks: readonly Part[]): void => void answers.set('/jwks', { body: { keys: jwks } })
  answers.set('/.well-known/openid-configuration', { body: { issuer: url, jwks_uri: `${url}/jwks` } })
  keys()
  return { url, fetched, answers, keys }
}
