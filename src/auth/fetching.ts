/** Sends requests to issuers: configured addresses and those their metadata names, never one from a token (RFC 8725 §3.10). */
import { readFileSync } from 'node:fs'
import type { Dispatcher } from 'undici'
import { isFetchable } from '../core/wire/addresses.ts'
import { FETCH_TIMEOUT_MS, MAX_DOCUMENT_BYTES, readDocument, type Document, type DocumentSource } from '../jwt/document.ts'

const MAX_ANSWER_BYTES = 32 * 1024

interface IssuerAccess {
  readonly insecureHttp: boolean
  /** PEM of a private CA. */
  readonly ca?: string | undefined
  /** Sent to the issuer's own address. Read for each request, because such tokens are renewed. */
  readonly bearerTokenFile?: string | undefined
}

export interface Fetching extends DocumentSource {
  /** The headers of an answer with any status: they contain its time. */
  headers(uri: string): Promise<Readonly<Record<string, string | string[] | undefined>>>
  post(uri: string, form: URLSearchParams, headers: Readonly<Record<string, string>>): Promise<Document>
}

type Sent = Pick<Dispatcher.RequestOptions, 'method'> & { readonly body?: string; readonly headers: Record<string, string> }

/** @param home the configured address: the bearer token is sent only to its origin */
export function makeFetching(home: string, access: IssuerAccess): Fetching {
  // The environment cannot switch verification off (NODE_TLS_REJECT_UNAUTHORIZED).
  const verified = { rejectUnauthorized: true, ...(access.ca === undefined ? {} : { ca: access.ca }) }
  let dispatcher: Dispatcher | undefined
  const send = async (uri: string, options: Sent) => {
    // Loaded with the first request: most commands of the program send none, and would start a quarter slower.
    const { Agent, request } = await import('undici')
    dispatcher ??= new Agent({ allowH2: false, connect: verified })
    const bearer = access.bearerTokenFile
    const mine = bearer !== undefined && new URL(uri).origin === new URL(home).origin
    const headers = {
      accept: 'application/json',
      ...(mine ? { authorization: `Bearer ${readFileSync(bearer, 'utf8').trim()}` } : {}),
      ...options.headers,
    }
    // undici follows no redirect unless configured: a 3xx is a failure here.
    return request(uri, {
      ...options,
      headers,
      signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
      dispatcher,
    })
  }
  const ask = async (uri: string, options: Sent): Promise<Document> => {
    const answer = await send(uri, options)
    if (answer.statusCode !== 200) {
      await answer.body.dump()
      throw new Error(`${uri} answered ${answer.statusCode}`)
    }
    // Up to ten thousand answers about tokens are cached.
    const most = options.method === 'POST' ? MAX_ANSWER_BYTES : MAX_DOCUMENT_BYTES
    return readDocument(uri, answer.body as AsyncIterable<Buffer>, most)
  }
  return {
    allowed: (uri) => isFetchable(uri, access.insecureHttp),
    get: (uri) => ask(uri, { method: 'GET', headers: {} }),
    headers: async (uri) => {
      const answer = await send(uri, { method: 'GET', headers: {} })
      await answer.body.dump()
      return answer.headers
    },
    post: (uri, form, headers) =>
      ask(uri, {
        method: 'POST',
        body: form.toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      }),
  }
}
