/** The answers of the operator API, and what of a request the log says besides how it went. */
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

/** What the log says of a request, besides how it went. */
export interface Audited {
  /** A socket that is gone no longer knows its address. */
  readonly client: string
  readonly about: About
}

export interface About {
  /** A token, user or group, in one word. */
  readonly target?: string
  readonly thread?: string
  readonly right?: string
}

/** Writes the line of a request: how it went. */
export type AuditLine = (request: FastifyRequest, outcome: string) => void

/** A refusal on its way to the error handler, with a text of its own where the usual one would not help an operator. */
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

/** For what is not there at all. */
export const notFound = (text?: string): Refused => new Refused(refuse('route-unknown'), text)

/** Notes what a request is about, for its line. */
export function note(request: FastifyRequest, about: About): void {
  const { client = request.ip, about: before } = request.audited ?? {}
  request.audited = { client, about: { ...before, ...about } }
}

/** @throws Refused for a request that brings a body where none belongs */
export function withoutBody(request: FastifyRequest): void {
  if (request.body !== undefined && (request.body as Buffer).length > 0) throw new Refused(refuse('body-unexpected'))
}

/**
 * The body of a request, one JSON object.
 * @throws Refused
 */
export function objectOf(request: FastifyRequest): JsonObject {
  const reader = makeJsonReader()
  const reading = reader.push((request.body as Buffer | undefined) ?? new Uint8Array()) ?? reader.end()
  if (isRefusal(reading)) throw new Refused(reading)
  return reading.value
}

/** The refusal that an error stands for; `internal` for a fault of the gateway's own. */
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
  // A buffer, because Fastify gives a string a content type of its own choosing.
  return reply
    .code(status)
    .headers(headers)
    .send(Buffer.from(JSON.stringify(value)))
}

/** Answers that it is done, and there is nothing to show: 204. */
export function sendDone(reply: FastifyReply): FastifyReply {
  return reply.code(204).headers({ 'cache-control': 'no-store', 'x-request-id': reply.request.id }).send()
}
