/**
 * The operator API, on a listener of its own (docs/operations.md). Nothing is answered without a credential, and everything
 * that changes something, or was refused, is a line in the log.
 */
import { STATUS_CODES } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { isRefusal, refuse, type Refusal } from '../core/reasons.ts'
import type { Logger } from '../observe/log.ts'
import { StoreUnavailable, type RevocationList, type RevocationStore, type Revoked } from '../store/port.ts'
import { isAdmitted, type AdminCredentials } from './admin-credentials.ts'
import { readOrder } from './admin-order.ts'
import { refusalAnswer } from './answer.ts'
import { revocationOf, shown, wordFor } from './revocation-form.ts'

declare module 'fastify' {
  interface FastifyRequest {
    audited: Audited | null
  }
}

/** What the log says of a request, besides how it went. */
interface Audited {
  /** A socket that is gone no longer knows its address. */
  readonly client: string
  what: Revoked | null
}

/** What the operator API is made of. */
export interface AdminParts {
  readonly store: RevocationStore
  /** What this process goes by. */
  readonly revocations: Pick<RevocationList, 'current' | 'reload'>
  readonly credentials: AdminCredentials
  /** The issuer keys of the configuration in force. */
  readonly issuers: () => readonly string[]
  /** Reads the configuration anew. */
  readonly reload: () => Promise<ReloadResult>
  readonly log: Logger
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly requestId: () => string
}

const BODY_LIMIT = 4096
/** Nobody holds a connection by sending slowly. */
const REQUEST_TIMEOUT_MS = 10_000
/** The longest id, percent-encoded: more than Fastify's 100 characters, which would make a 404 of it. */
const MAX_PARAM_LENGTH = 16_384

/** What a route does, for the log. */
const ACTIONS: Readonly<Record<string, string>> = {
  'GET /revocations': 'list',
  'POST /revocations': 'revoke',
  'POST /reload': 'reload',
  'DELETE /revocations/token/:id': 'lift',
  'DELETE /revocations/user/:id': 'lift',
}

/** Outcomes with which an operator got what they wanted. */
const DONE: ReadonlySet<string> = new Set(['done', 'reloaded', 'unchanged'])

/** How reading the configuration anew went. */
export interface ReloadResult {
  readonly outcome: 'reloaded' | 'unchanged' | 'refused'
  /** Counts up with every configuration that was put in force. */
  readonly generation: number
  /** What stands in the way, a line each; then the last good configuration stays in force. */
  readonly faults: readonly string[]
}

/** Makes the listener's application; it is not listening yet. */
export function makeAdminApp(parts: AdminParts): FastifyInstance {
  const { store, log } = parts
  const audit = (request: FastifyRequest, outcome: string): void => {
    const { client, what } = request.audited ?? { client: request.ip, what: null }
    const action = ACTIONS[`${request.method} ${request.routeOptions.url ?? ''}`] ?? 'none'
    const target = what === null ? undefined : wordFor(what)
    log[DONE.has(outcome) ? 'info' : 'warn']({ requestId: request.id, client, action, target, outcome }, 'admin')
  }
  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const refused = refusedBy(error)
    if (refused.refusal.reason === 'internal') log.error({ err: error, requestId: request.id }, 'the gateway failed')
    audit(request, refused.refusal.code)
    return sendRefusal(reply, refused)
  }
  const lift = async (request: FastifyRequest, reply: FastifyReply, what: Revoked): Promise<FastifyReply> => {
    if (request.body !== undefined && (request.body as Buffer).length > 0) throw new Refused(refuse('body-unexpected'))
    note(request, what)
    if (!(await store.lift(what))) throw new Refused(refuse('route-unknown'), 'Nothing of the kind is revoked.')
    await parts.revocations.reload()
    audit(request, 'done')
    return reply.code(204).headers({ 'cache-control': 'no-store', 'x-request-id': request.id }).send()
  }

  const app = fastify({
    logger: false,
    forceCloseConnections: true,
    genReqId: parts.requestId,
    requestIdHeader: false,
    bodyLimit: BODY_LIMIT,
    requestTimeout: REQUEST_TIMEOUT_MS,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    // What the router can't read is no way to an answer without a credential.
    frameworkErrors: (_error, request, reply) => void fail(fault(request, parts) ?? notFound(), request, reply),
    clientErrorHandler: (error, socket) => {
      if (!socket.writable) socket.destroy()
      else socket.end(unreadable(error.code))
    },
  })
  app.decorateRequest('audited', null)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('onRequest', async (request) => {
    request.audited = { client: request.ip, what: null }
    const refused = fault(request, parts)
    if (refused !== null) throw refused
    // Whatever stands behind an id that was not percent-encoded would be cut off, and another one would be meant.
    if (/[?#]/.test(request.originalUrl)) throw notFound()
  })
  app.setErrorHandler(fail)
  app.setNotFoundHandler((request, reply) => fail(notFound(), request, reply))

  app.get('/revocations', async (request, reply) => {
    const revocations = await store.revocations()
    return send(reply, 200, { revocations: revocations.map(shown) }, request.id)
  })
  app.post('/revocations', async (request, reply) => {
    const order = readOrder(request.body as Buffer | undefined, parts.issuers())
    if (isRefusal(order)) throw new Refused(order, order.text)
    note(request, order.what)
    const { what, before } = order
    const revokedAt = parts.clock()
    await store.revoke('tokenId' in what ? { kind: 'token', ...what, revokedAt } : { kind: 'user', ...what, before, revokedAt })
    // Done is what this process goes by: if it can't be read back, the operator has to come again.
    await parts.revocations.reload()
    const stored = revocationOf(what, parts.revocations.current())
    audit(request, 'done')
    // Another operator may have lifted it since; then there is nothing to show.
    return send(reply, 201, stored === undefined ? {} : shown(stored), request.id)
  })
  app.post('/reload', async (request, reply) => {
    if (request.body !== undefined && (request.body as Buffer).length > 0) throw new Refused(refuse('body-unexpected'))
    const result = await parts.reload()
    audit(request, result.outcome)
    return send(reply, result.outcome === 'refused' ? 409 : 200, result, request.id)
  })
  app.delete<{ Params: { id: string } }>('/revocations/token/:id', (request, reply) =>
    lift(request, reply, { tokenId: request.params.id }),
  )
  app.delete<{ Params: { id: string } }>('/revocations/user/:id', (request, reply) =>
    lift(request, reply, { userId: request.params.id }),
  )
  return app
}

/** A refusal on its way to the error handler, with a text of its own where the usual one would not help an operator. */
class Refused extends Error {
  override readonly name = 'Refused'
  readonly refusal: Refusal
  readonly text: string | undefined

  constructor(refusal: Refusal, text?: string) {
    super(refusal.reason)
    this.refusal = refusal
    this.text = text
  }
}

const notFound = (): Refused => new Refused(refuse('route-unknown'))

/** What is wrong with a request before it is looked at; null for a caller with a credential. */
function fault(request: FastifyRequest, { credentials }: AdminParts): Refused | null {
  // Operators' tools send none. A page in an operator's browser does, also under a name that was bent to this address.
  if (request.headers.origin !== undefined) return new Refused(refuse('origin-not-listed'))
  const lines = request.raw.headersDistinct['authorization'] ?? []
  if (isAdmitted(lines, credentials.credentials())) return null
  return new Refused(lines.length === 0 ? refuse('credential-missing') : refuse('token-malformed'))
}

function note(request: FastifyRequest, what: Revoked): void {
  if (request.audited !== null) request.audited.what = what
}

function refusedBy(error: unknown): Refused {
  if (error instanceof Refused) return error
  if (error instanceof StoreUnavailable) return new Refused(refuse('store-unavailable'))
  const { code, statusCode } = error as { readonly code?: string; readonly statusCode?: number }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new Refused(refuse('body-too-large'))
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new Refused(refuse('media-type-unsupported'))
  return new Refused(statusCode === 400 ? refuse('body-aborted') : refuse('internal'))
}

function sendRefusal(reply: FastifyReply, { refusal, text }: Refused): FastifyReply {
  const { status, headers, body } = refusalAnswer(refusal)
  const told = text === undefined ? body : JSON.stringify({ error: text, message: text, code: refusal.code })
  return reply
    .code(status)
    .headers({ ...headers, 'x-request-id': reply.request.id })
    .send(Buffer.from(told))
}

function send(reply: FastifyReply, status: number, value: object, requestId: string): FastifyReply {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store', 'x-request-id': requestId }
  // A buffer, because Fastify gives a string a content type of its own choosing.
  return reply
    .code(status)
    .headers(headers)
    .send(Buffer.from(JSON.stringify(value)))
}

/** The answer to what the HTTP parser could not read, as it stands on the wire. */
function unreadable(code: string | undefined): string {
  const { status, headers, body } = refusalAnswer(
    refuse(code === 'HPE_HEADER_OVERFLOW' ? 'http-headers-too-large' : 'http-unreadable'),
  )
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n${body}`
}
