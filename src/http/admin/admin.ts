/** The admin API, on its own listener (docs/reference/admin-api.md). Answers require a credential; changes and refusals are logged. */
import { STATUS_CODES } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { isRefusal, refuse } from '../../core/reasons.ts'
import type { Logger } from '../../observe/log.ts'
import {
  bodyRefusal,
  refusalOf,
  send,
  sendRefusal,
  type AddRoute,
  type AdminAnswer,
  type AdminRefusal,
  type AdminRoute,
} from './answers.ts'
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

export interface ReloadResult {
  readonly outcome: 'reloaded' | 'unchanged' | 'refused'
  readonly generation: number
  /** One line each; if there are any, the last good configuration stays active. */
  readonly faults: readonly string[]
}

/** The longest id, percent-encoded: Fastify's limit of 100 characters would answer 404. */
const MAX_PARAM_LENGTH = 16_384

const DONE: ReadonlySet<string> = new Set(['done', 'reloaded', 'unchanged'])

export function makeAdminApp(parts: AdminParts): FastifyInstance {
  const { log } = parts
  const audit = (request: FastifyRequest, outcome: string): void => {
    const { client, about } = request.audited ?? { client: request.ip, about: {} }
    const { action = 'none' } = request.routeOptions.config
    log[DONE.has(outcome) ? 'info' : 'warn']({ requestId: request.id, client, action, ...about, outcome }, 'admin')
  }
  const respond = (request: FastifyRequest, reply: FastifyReply, result: AdminAnswer | AdminRefusal): FastifyReply => {
    if (isRefusal(result)) {
      audit(request, result.code)
      return sendRefusal(reply, result)
    }
    if (result.change !== undefined) audit(request, result.change)
    return send(reply, result)
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
    frameworkErrors: (_error, request, reply) =>
      void respond(request, reply, accessRefusal(request, parts.credentials) ?? refuse('route-unknown')),
    clientErrorHandler: (error, socket) => {
      if (!socket.writable) socket.destroy()
      else socket.end(unreadable(error.code))
    },
  })
  readAllLines(app.server)
  app.decorateRequest('audited', null)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('onRequest', async (request, reply) => {
    request.audited = { client: request.ip, about: {} }
    const refusal = accessRefusal(request, parts.credentials) ?? targetRefusal(request)
    return refusal === null ? undefined : respond(request, reply, refusal)
  })
  app.setErrorHandler((error, request, reply) => {
    const refusal = refusalOf(error)
    if (refusal.reason === 'internal') log.error({ err: error, requestId: request.id }, 'the gateway failed')
    return respond(request, reply, refusal)
  })
  app.setNotFoundHandler((request, reply) => respond(request, reply, refuse('route-unknown')))

  const addRoute: AddRoute = (method, url, action, handle) => {
    app.route<AdminRoute>({
      method,
      url,
      config: { action },
      handler: async (request, reply) => respond(request, reply, await handle(request)),
    })
  }
  addRevocationRoutes(addRoute, parts)
  addThreadRoutes(addRoute, parts)
  addRoute('POST', '/reload', 'reload', async (request) => {
    const refusal = bodyRefusal(request)
    if (refusal !== null) return refusal
    const result = await parts.reload()
    return { status: result.outcome === 'refused' ? 409 : 200, body: result, change: result.outcome }
  })
  return app
}

function accessRefusal(request: FastifyRequest, { credentials }: AdminCredentials): AdminRefusal | null {
  // Operators' tools send no Origin. A page in an operator's browser does, also with a host name rebound to this address.
  if (request.headers.origin !== undefined) return refuse('origin-not-listed')
  const lines = request.raw.headersDistinct['authorization'] ?? []
  if (isAdmitted(lines, credentials())) return null
  return refuse(lines.length === 0 ? 'credential-missing' : 'token-malformed')
}

/** Only the thread's upstream may follow as a query: no thread id has a `?`, so nothing of an id is cut off. */
const SCOPED = /^\/threads\/[^?#]+\?scope=[^?#&]*$/

/** Text behind an unencoded `?` or `#` would be cut off, and the request would mean another id. */
function targetRefusal({ originalUrl }: FastifyRequest): AdminRefusal | null {
  return /[?#]/.test(originalUrl) && !SCOPED.test(originalUrl) ? refuse('route-unknown') : null
}

function unreadable(code: string | undefined): string {
  const { status, headers, body } = refusalAnswer(
    refuse(code === 'HPE_HEADER_OVERFLOW' ? 'http-headers-too-large' : 'http-unreadable'),
  )
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n${body}`
}
