/** The few things that the issuer, the agent and the runtime do alike with node:http. */
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A body larger than the reader's limit. */
export class BodyTooLarge extends Error {}

/**
 * Starts a server.
 * @param port the port, or 0 for any free one
 * @returns the port it listens on and its origin, such as `http://127.0.0.1:4455`
 */
export async function listen(server: Server, port: number, host: string): Promise<{ port: number; origin: string }> {
  server.listen(port, host)
  await once(server, 'listening')
  const bound = (server.address() as AddressInfo).port
  return { port: bound, origin: `http://${host.includes(':') ? `[${host}]` : host}:${bound}` }
}

/** Stops a server and ends every connection, also those with an open stream. Resolves at once if it's stopped. */
export async function stop(server: Server): Promise<void> {
  if (!server.listening) return
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

/** Adds to a list of what happened, of which the last 10,000 entries are kept. */
export function remember<Entry>(list: Entry[], entry: Entry): void {
  list.push(entry)
  if (list.length > 10_000) list.shift()
}

/**
 * Reads the body of a request as text.
 * @throws {BodyTooLarge} beyond `limit` bytes; the rest isn't read
 */
export async function readBody(request: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  // Leaving the loop early must not destroy the request: its socket still has to carry the answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) throw new BodyTooLarge(`the body is larger than ${limit} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Answers with a JSON value. */
export function sendJson(response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
}
