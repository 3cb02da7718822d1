/** Writes the answers of the operator API, and collects what the log says of a request besides its outcome. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { makeJsonReader, type JsonObject } from '../../core/json/read.ts'
import { isRefusal, refuse, type Refusal } from '../../core/reasons.ts'
import { StoreUnavailable } from '../../store/port.ts'
import { refusalAnswer } from '../pipeline/answer.ts'

declare module 'fastify' {
  interface FastifyRequest {
    audited: Audited | null
  }
}

export interface Audited {
  /** Kept because a closed socket no longer knows its address. */
  readonly client: string
  readonly about: About
}

export interface About {
  readonly target?: string
  readonly thread?: string
  readonly right?: string
}

export type AuditLine = (request: FastifyRequest, outcome: string) => void

/** A refusal on its way to the error handler, with its own text where the usual one would not help an operator. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly refusal: Refusal
  readonly text: string | undefined

  constructor(refusal: Refusal, text?: string) {
    super(refusal.reason)
    this.refusal = refusal
    this.text = text
  }
}

export const notFound = (text?: string): Refused => new Refused(refuse('route-unknown'), text)

export function note(request: FastifyRequest, about: About): void {
  const { client = request.ip, about: before } = request.audited ?? {}
  request.audited = { client, about: { ...before, ...about } }
}

/** @throws Refused for a request with an unexpected body */
export function withoutBody(request: FastifyRequest): void {
  if (request.body !== undefined && (request.body as Buffer).length > 0) throw new Refused(refuse('body-unexpected'))
}

/**
 * @returns the body, one JSON object
 * @throws Refused
 */
export function objectOf(request: FastifyRequest): JsonObject {
  const reader = makeJsonReader()
  const reading = reader.push((request.body as Buffer | undefined) ?? new Uint8Array()) ?? reader.end()
  if (isRefusal(reading)) throw new Refused(reading)
  return reading.value
}

export function refusedBy(error: unknown): Refused {
  if (error instanceof Refused) return error
  if (error instanceof StoreUnavailable) return new Refused(refuse('store-unavailable'))
  const { code, statusCode } = error as { readonly code?: string; readonly statusCode?: number }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new Refused(refuse('body-too-large'))
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new Refused(refuse('media-type-unsupported'))
  return new Refused(statusCode === 400 ? refuse('body-aborted') : refuse('internal'))
}

export function sendRefusal(reply: FastifyReply, { refusal, text }: Refused): FastifyReply {
  const { status, headers, body } = refusalAnswer(refusal)
  const told = text === undefined ? body : JSON.stringify({ error: text, message: text, code: refusal.code })
  return reply
    .code(status)
    .headers({ ...headers, 'x-request-id': reply.request.id })
    .send(Buffer.from(told))
}

export function send(reply: FastifyReply, status: number, value: object): FastifyReply {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store', 'x-request-id': reply.request.id }
  // A buffer, because Fastify adds its own content type to a string.
  return reply
    .code(status)
    .headers(headers)
    .send(Buffer.from(JSON.stringify(value)))
}

export function sendDone(reply: FastifyReply): FastifyReply {
  return reply.code(204).headers({ 'cache-control': 'no-store', 'x-request-id': reply.request.id }).send()
}
