/** The requests and answers of the admin API, and what its log lines say about a request besides the outcome. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { makeJsonReader, type JsonReading } from '../../core/json/read.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import { StoreUnavailable } from '../../store/port/state.ts'
import { refusalAnswer } from '../pipeline/answer.ts'

declare module 'fastify' {
  interface FastifyRequest {
    audited: Audited | null
  }
  interface FastifyContextConfig {
    action?: string
    /** True for a route that answers without a credential. */
    isOpen?: boolean
    /** False for a route that changes nothing. */
    changes?: boolean
    /** Names that a query may have. */
    query?: readonly string[] | 'any'
  }
}

export interface Audited {
  /** Kept because a closed socket no longer knows its address. */
  readonly client: string
  readonly about: About
}

export interface About {
  /** Who did it: `credential`, or `openid:` and the subject. */
  readonly operator?: string
  readonly target?: string
  readonly thread?: string
  readonly scope?: string
  readonly right?: string
}

export type Change = 'done' | 'reloaded' | 'unchanged' | 'refused'

export interface AdminAnswer {
  readonly status: number
  readonly body: unknown
  readonly change?: Change
}

/** The text replaces the code's text where that would not help an operator. */
export type AdminRefusal = Refusal & { readonly text?: string }

export interface AdminRoute {
  /** Only a route whose URL has an `:id` may read it. */
  Params: { id: string }
  /** Only the names of the operation, each once. */
  Querystring: Readonly<Record<string, string>>
}

export type AdminRequest = FastifyRequest<AdminRoute>

export const notFound = (text: string): AdminRefusal => ({ ...refuse('route-unknown'), text })

export function note(request: FastifyRequest, about: About): void {
  const { client = request.ip, about: before } = request.audited ?? {}
  request.audited = { client, about: { ...before, ...about } }
}

export function bodyRefusal(request: FastifyRequest): AdminRefusal | null {
  return request.body !== undefined && (request.body as Buffer).length > 0 ? refuse('body-unexpected') : null
}

export function readBody(request: FastifyRequest): JsonReading {
  const reader = makeJsonReader()
  return reader.push((request.body as Buffer | undefined) ?? Buffer.alloc(0)) ?? reader.end()
}

export function refusalOf(error: unknown): AdminRefusal {
  if (error instanceof StoreUnavailable) return refuse('store-unavailable')
  const { code, statusCode } = error as { readonly code?: string; readonly statusCode?: number }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return refuse('body-too-large')
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return refuse('media-type-unsupported')
  return statusCode === 400 ? refuse('body-aborted') : refuse('internal')
}

export function sendRefusal(reply: FastifyReply, refusal: AdminRefusal): FastifyReply {
  const { status, headers, body } = refusalAnswer(refusal)
  const { text, code } = refusal
  const shown = text === undefined ? body : JSON.stringify({ error: text, message: text, code })
  return reply
    .code(status)
    .headers({ ...headers, 'x-request-id': reply.request.id })
    .send(Buffer.from(shown))
}

export function send(reply: FastifyReply, { status, body }: AdminAnswer): FastifyReply {
  const headers = { 'cache-control': 'no-store', 'x-request-id': reply.request.id }
  if (body === null) return reply.code(status).headers(headers).send()
  // A buffer, because Fastify adds its own content type to a string.
  return reply
    .code(status)
    .headers({ 'content-type': 'application/json', ...headers })
    .send(Buffer.from(JSON.stringify(body)))
}
