/**
 * The operator API, on its own listener (docs/operations.md). Every answer requires a credential; every change and every refusal
 * is a line in the log.
 */
import { STATUS_CODES } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { refuse } from '../../core/reasons.ts'
import type { Logger } from '../../observe/log.ts'
import { notFound, Refused, refusedBy, send, sendRefusal, withoutBody, type AuditLine } from './answers.ts'
import { isAdmitted, type AdminCredentials } from './credentials.ts'
import { addRevocationRoutes, type AdminRevocationParts } from './revocations.ts'
import { addThreadRoutes, type AdminThreadParts } from './threads.ts'
import { refusalAnswer } from '../pipeline/answer.ts'
import { OPERATOR_LISTENER, readAllLines } from '../listeners/listening.ts'

export interface AdminParts extends AdminRevocationParts, AdminThreadParts {
  readonly store: AdminRevocationParts['store'] & AdminThreadParts['store']
  readonly credentials: AdminCredentials
  readonly reload: () => Promise<ReloadResult>
  readonly log: Logger
  readonly requestId: () => string
}

/** The longest id, percent-encoded: Fastify's limit of 100 characters would answer 404. */
const MAX_PARAM_LENGTH = 16_384

const ACTIONS: Readonly<Record<string, string>> = {
  'GET /revocations': 'list',
  'POST /revocations': 'revoke',
  'POST /reload': 'reload',
  'DELETE /revocations/token/:id': 'lift',
  'DELETE /revocations/user/:id': 'lift',
  'GET /threads/:id': 'thread',
  'GET /threads/:id/grants': 'grants',
  'POST /threads/:id/grants': 'grant',
  'DELETE /threads/:id/grants': 'ungrant',
}

const DONE: ReadonlySet<string> = new Set(['done', 'reloaded', 'unchanged'])

export interface ReloadResult {
  readonly outcome: 'reloaded' | 'unchanged' | 'refused'
  /** Increases with every activated configuration. */
  readonly generation: number
  /** The errors, one line each. The last good configuration then stays active. */
  readonly faults: readonly string[]
}

export function makeAdminApp(parts: AdminParts): FastifyInstance {
  const { log } = parts
  const audit: AuditLine = (request, outcome) => {
    const { client, about } = request.audited ?? { client: request.ip, about: {} }
    const action = ACTIONS[`${request.method} ${request.routeOptions.url ?? ''}`] ?? 'none'
    log[DONE.has(outcome) ? 'info' : 'warn']({ requestId: request.id, client, action, ...about, outcome }, 'admin')
  }
  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const refused = refusedBy(error)
    if (refused.refusal.reason === 'internal') log.error({ err: error, requestId: request.id }, 'the gateway failed')
    audit(request, refused.refusal.code)
    return sendRefusal(reply, refused)
  }

  const app = fastify({
    logger: false,
    forceCloseConnections: true,
    genReqId: parts.requestId,
    requestIdHeader: false,
    ...OPERATOR_LISTENER,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    // A target that the router can't read must not get an answer without a credential.
    frameworkErrors: (_error, request, reply) => void fail(fault(request, parts) ?? notFound(), request, reply),
    clientErrorHandler: (error, socket) => {
      if (!socket.writable) socket.destroy()
      else socket.end(unreadable(error.code))
    },
  })
  readAllLines(app.server)
  app.decorateRequest('audited', null)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('onRequest', async (request) => {
    request.audited = { client: request.ip, about: {} }
    const refused = fault(request, parts)
    if (refused !== null) throw refused
    // Text behind an unencoded `?` or `#` would be cut off, and the request would mean another id.
    if (/[?#]/.test(request.originalUrl) && !SCOPED.test(request.originalUrl)) throw notFound()
  })
  app.setErrorHandler(fail)
  app.setNotFoundHandler((request, reply) => fail(notFound(), request, reply))

  addRevocationRoutes(app, parts, audit)
  addThreadRoutes(app, parts, audit)
  app.post('/reload', async (request, reply) => {
    withoutBody(request)
    const result = await parts.reload()
    audit(request, result.outcome)
    return send(reply, result.outcome === 'refused' ? 409 : 200, result)
  })
  return app
}

/** Only the thread's upstream may follow as a query: no thread id has a `?`, so nothing of an id is cut off. */
const SCOPED = /^\/threads\/[^?#]+\?scope=[^?#&]*$/

function fault(request: FastifyRequest, { credentials }: AdminParts): Refused | null {
  // Operators' tools send no Origin. A page in an operator's browser does, also with a host name rebound to this address.
  if (request.headers.origin !== undefined) return new Refused(refuse('origin-not-listed'))
  const lines = request.raw.headersDistinct['authorization'] ?? []
  if (isAdmitted(lines, credentials.credentials())) return null
  return new Refused(lines.length === 0 ? refuse('credential-missing') : refuse('token-malformed'))
}

function unreadable(code: string | undefined): string {
  const { status, headers, body } = refusalAnswer(
    refuse(code === 'HPE_HEADER_OVERFLOW' ? 'http-headers-too-large' : 'http-unreadable'),
  )
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n${body}`
}
