/** Writes a request for the upstream: method, target and body by its transport, headers as they are given. */
import { Readable } from 'node:stream'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import { wireForm, type RuntimeFacts } from '../../core/route/transport.ts'
import type { UpstreamRequest } from './upstream.ts'

export interface Question {
  readonly descriptor: RouteDescriptor
  readonly headers: Readonly<Record<string, string>>
  readonly query?: RouteDescriptor['query'] | undefined
  /** A recording is a stream, which only a multi-route upstream takes. A large body comes in pieces. */
  readonly body?: Buffer | readonly Uint8Array[] | Readable | undefined
}

/** @throws Error for an operation that the upstream does not have */
export function upstreamRequest(
  upstream: RuntimeFacts,
  basePath: string,
  { descriptor, headers, query, body }: Question,
): UpstreamRequest {
  const { method, target, envelope } = wireForm(upstream, basePath, descriptor, query)
  const pieces = Buffer.isBuffer(body) ? [body] : body
  const lasting = descriptor.route.streams === true
  if (envelope === null) return { method, target, headers, lasting, ...(pieces === undefined ? {} : { body: pieces }) }
  if (pieces instanceof Readable) throw new Error('a recording that streams does not fit into an envelope')
  const open = JSON.stringify(envelope).slice(0, -1)
  return {
    method,
    target,
    lasting,
    headers: { ...headers, 'content-type': 'application/json' },
    // The body is JSON already, and may be large: the gateway neither writes it again nor copies it.
    body: [Buffer.from(open), ...(pieces === undefined ? [] : [Buffer.from(',"body":'), ...pieces]), Buffer.from('}')],
  }
}
