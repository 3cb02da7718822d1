/** The admin API, on its own listener (docs/reference/admin-api.md). Answers require a credential; changes and refusals are logged. */
import { STATUS_CODES } from 'node:http'
import { z } from 'zod'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { isRefusal, refuse } from '../../core/reasons.ts'
import type { Logger } from '../../observe/log.ts'
import {
  bodyRefusal,
  note,
  readBody,
  refusalOf,
  send,
  sendRefusal,
  type AdminAnswer,
  type AdminRefusal,
  type AdminRequest,
  type AdminRoute,
} from './answers.ts'
import { addConsole, type Console, type ConsoleSettings } from './console/console.ts'
import { isAdmitted, type AdminCredentials } from './credentials.ts'
import { addInspectionRoutes, type Inspection } from './inspection.ts'
import { openApiOf } from './openapi.ts'
import { answer, type AddOperation, type Operation } from './operations.ts'
import { addRevocationRoutes, type AdminRevocationParts } from './revocations.ts'
import { reloadSchema } from './schemas.ts'
import { addThreadRoutes, type AdminThreadParts } from './threads.ts'
import { refusalAnswer } from '../pipeline/answer.ts'
import { OPERATOR_LISTENER, readAllLines } from '../listeners/listening.ts'

export interface AdminParts extends AdminRevocationParts, AdminThreadParts {
  readonly store: AdminRevocationParts['store'] & AdminThreadParts['store']
  readonly credentials: AdminCredentials
  /** Null without a console. */
  readonly console: ConsoleSettings | null
  readonly reload: () => Promise<ReloadResult>
  readonly inspection: Inspection
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
      void respond(request, reply, credentialRefusal(request, parts.credentials) ?? refuse('route-unknown')),
    clientErrorHandler: (error, socket) => {
      if (!socket.writable) socket.destroy()
      else socket.end(unreadable(error.code))
    },
  })
  readAllLines(app.server)
  app.decorateRequest('audited', null)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  const { credentials, clock } = parts
  const operators = parts.console === null ? null : addConsole(app, { settings: parts.console, credentials, log, clock, respond })
  // After the plugin of the console has read the cookies.
  app.after(() => {
    app.addHook('onRequest', async (request, reply) => {
      request.audited = { client: request.ip, about: {} }
      const isOpen = request.routeOptions.config.isOpen === true
      const refusal = (isOpen ? null : admit(request, credentials, operators)) ?? targetRefusal(request)
      return refusal === null ? undefined : respond(request, reply, refusal)
    })
  })
  app.setErrorHandler((error, request, reply) => {
    const refusal = refusalOf(error)
    if (refusal.reason === 'internal') log.error({ err: error, requestId: request.id }, 'the gateway failed')
    return respond(request, reply, refusal)
  })
  app.setNotFoundHandler((request, reply) => respond(request, reply, refuse('route-unknown')))

  const operations: Operation[] = []
  const addOperation: AddOperation = (operation, handle) => {
    const { method, url, action, query = {}, bodyLimit } = operation
    operations.push(operation)
    app.route<AdminRoute>({
      method,
      url,
      config: { action, query: Object.keys(query), changes: method !== 'GET' && operation.changes !== false },
      ...(bodyLimit === undefined ? {} : { bodyLimit }),
      handler: async (request, reply) => {
        const unread = operation.body === undefined && method !== 'GET' ? bodyRefusal(request) : null
        const result = unread ?? (await handle(request, () => readForm(request, operation)))
        return respond(request, reply, result)
      },
    })
  }
  addRevocationRoutes(addOperation, parts)
  addThreadRoutes(addOperation, parts)
  addInspectionRoutes(addOperation, parts.inspection)
  addOperation(
    {
      method: 'POST',
      url: '/reload',
      id: 'reload',
      action: 'reload',
      summary: 'Reloads the configuration. The request has no body.',
      answers: {
        200: { description: 'The new configuration is active, or no file had changed.', schema: reloadSchema },
        409: { description: 'The files have errors. The previous configuration stays active.', schema: reloadSchema },
      },
      refusals: [400, 413, 415],
    },
    async () => {
      const result = await parts.reload()
      return result.outcome === 'refused' ? answer(409, result, 'refused') : answer(200, result, result.outcome)
    },
  )
  let document: ReturnType<typeof openApiOf> | undefined
  addOperation(
    {
      method: 'GET',
      url: '/openapi.json',
      id: 'openApi',
      action: 'openapi',
      summary: 'Describes this API: this document.',
      answers: { 200: { description: 'An OpenAPI 3.1 document.', schema: z.looseObject({ openapi: z.string() }) } },
      refusals: [],
    },
    async () => answer(200, { ...(document ??= openApiOf(operations)) }),
  )
  return app
}

/** Reads a body strictly, by the schema of its operation. The text of a refusal must not quote the body. */
function readForm<Body extends z.ZodType>(request: AdminRequest, { body, form }: Operation<Body>): z.output<Body> | AdminRefusal {
  if (body === undefined) throw new Error('an operation without a body')
  const reading = readBody(request)
  if (isRefusal(reading)) return { ...reading, ...(form === undefined ? {} : { text: form }) }
  const read = body.safeParse(reading.value)
  if (read.success) return read.data
  const unknown = read.error.issues.some(({ code }) => code === 'unrecognized_keys')
  const text = unknown ? form : read.error.issues[0]?.message
  return { ...refuse('body-unexpected'), ...(text === undefined ? {} : { text }) }
}

/** Admits an operator by the session of the console, or by the credential. */
function admit(request: FastifyRequest, credentials: AdminCredentials, operators: Console | null): AdminRefusal | null {
  const operator = request.headers.authorization === undefined ? (operators?.operatorOf(request) ?? null) : null
  if (operator === null) return credentialRefusal(request, credentials)
  if (isRefusal(operator)) return operator
  note(request, { operator: operator.name })
  return null
}

function credentialRefusal(request: FastifyRequest, { credentials }: AdminCredentials): AdminRefusal | null {
  // Operators' tools send no Origin. A page in an operator's browser does, also with a host name rebound to this address.
  if (request.headers.origin !== undefined) return refuse('origin-not-listed')
  const lines = request.raw.headersDistinct['authorization'] ?? []
  if (isAdmitted(lines, credentials())) {
    note(request, { operator: 'credential' })
    return null
  }
  return refuse(lines.length === 0 ? 'credential-missing' : 'token-malformed')
}

const TARGET = /^\/[^?#]*(?:\?([^?#]*))?$/

/**
 * Text behind an unencoded `?` or `#` would be cut off, and the request would mean another id. A query is refused unless its
 * operation has each of its names.
 */
function targetRefusal({ originalUrl, routeOptions }: FastifyRequest): AdminRefusal | null {
  const [target, query] = TARGET.exec(originalUrl) ?? []
  if (target === undefined) return refuse('route-unknown')
  if (query === undefined) return null
  const known = routeOptions.config.query ?? []
  const names = query.split('&').map((part) => /^(\w+)=/.exec(part)?.[1] ?? '')
  return names.every((name) => known === 'any' || known.includes(name)) && new Set(names).size === names.length
    ? null
    : refuse('route-unknown')
}

function unreadable(code: string | undefined): string {
  const { status, headers, body } = refusalAnswer(
    refuse(code === 'HPE_HEADER_OVERFLOW' ? 'http-headers-too-large' : 'http-unreadable'),
  )
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n${body}`
}
