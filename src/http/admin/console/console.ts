/** The console for operators: one page on the admin listener, and the sign-in to it. */
import cookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { isRefusal, refuse } from '../../../core/reasons.ts'
import type { Logger } from '../../../observe/log.ts'
import { note, readBody, type AdminAnswer, type AdminRefusal } from '../answers.ts'
import { hasCredential, type AdminCredentials } from '../credentials.ts'
import { makeOpenId, type OpenIdSettings } from './open-id.ts'
import { makeOwnOrigin } from './origin.ts'
import { loadPage, type PageFile } from './page.ts'
import { makeSessions, type Operator } from './sessions.ts'

export interface ConsoleSettings {
  /** The origin at which browsers reach it; undefined for a loopback address. */
  readonly url?: string | undefined
  /** With `url`: the redirect address is a part of it. */
  readonly openId?: OpenIdSettings | undefined
}

export interface Console {
  /** The operator of the session, if the request may use it; null for a request without a session. */
  operatorOf(request: FastifyRequest): Operator | AdminRefusal | null
}

export interface ConsoleParts {
  readonly settings: ConsoleSettings
  readonly credentials: AdminCredentials
  readonly log: Logger
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly respond: (request: FastifyRequest, reply: FastifyReply, result: AdminAnswer | AdminRefusal) => FastifyReply
}

/** Never the text of an error: it may quote the answer of the issuer. */
function kindOf(error: unknown): string {
  const { code, name } = error as { readonly code?: string; readonly name?: string }
  return (code ?? name ?? 'failed').slice(0, 100)
}

const signInForm = z.strictObject({ credential: z.string() })

/** Adds the page and its sign-in. Requests of its routes need no credential. */
export function addConsole(app: FastifyInstance, parts: ConsoleParts): Console {
  const { settings, credentials, log, clock, respond } = parts
  const own = makeOwnOrigin(settings.url)
  const sessions = makeSessions(settings.url?.startsWith('https:') === true, clock)
  const openId =
    settings.openId === undefined || settings.url === undefined ? null : makeOpenId(settings.openId, settings.url, clock)
  const page = loadPage()
  // Cookies are parsed before the hook of the API asks for a session.
  void app.register(cookie)

  const show = (reply: FastifyReply, { type, bytes }: PageFile): FastifyReply =>
    reply.headers({ ...page.headers, 'content-type': type }).send(bytes)
  const addRoute = (
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    handle: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
  ): void => {
    app.route({
      method,
      url: `/console${url}`,
      config: { action: 'sign-in', isOpen: true, ...(url === '/callback' ? { query: 'any' } : {}) },
      handler: (request, reply) => {
        const foreign = !own.isOwnHost(request) || ((method !== 'GET' || url === '/sign-in') && !own.isOwnPage(request))
        return foreign ? respond(request, reply, refuse('origin-not-listed')) : handle(request, reply)
      },
    })
  }

  addRoute('GET', '', async (_request, reply) => show(reply, page.html))
  for (const [name, file] of page.files) addRoute('GET', `/${name}`, async (_request, reply) => show(reply, file))
  addRoute('GET', '/session', async (request, reply) =>
    respond(request, reply, {
      status: 200,
      body: { operator: sessions.of(request), openId: openId !== null },
    }),
  )
  addRoute('POST', '/session', async (request, reply) => {
    const reading = readBody(request)
    const form = isRefusal(reading) ? null : signInForm.safeParse(reading.value)
    if (form?.success !== true) return respond(request, reply, refuse('body-unexpected'))
    if (!hasCredential(form.data.credential, credentials.credentials())) return respond(request, reply, refuse('token-malformed'))
    const operator = { name: 'credential', role: 'operator' } as const
    note(request, { operator: operator.name })
    const { credential } = form.data
    sessions.begin(request, reply, operator, () => hasCredential(credential, credentials.credentials()))
    return respond(request, reply, { status: 204, body: null, change: 'done' })
  })
  addRoute('DELETE', '/session', async (request, reply) => {
    sessions.end(request, reply)
    return respond(request, reply, { status: 204, body: null })
  })
  if (openId !== null) {
    addRoute('GET', '/sign-in', async (request, reply) => {
      try {
        return await reply.redirect(await openId.begin(reply), 303)
      } catch (error) {
        log.warn({ detail: kindOf(error), requestId: request.id }, 'the issuer of operators does not answer')
        return reply.redirect('/console#failed', 303)
      }
    })
    addRoute('GET', '/callback', async (request, reply) => {
      try {
        const operator = await openId.finish(request, reply)
        if (operator === 'no-role') {
          log.warn({ requestId: request.id }, 'a user without a role for operators tried to sign in')
          return await reply.redirect('/console#no-role', 303)
        }
        note(request, { operator: operator.name })
        sessions.begin(request, reply, operator, () => true)
        log.info(
          { requestId: request.id, client: request.ip, action: 'sign-in', operator: operator.name, outcome: 'done' },
          'admin',
        )
        return await reply.redirect('/console', 303)
      } catch (error) {
        log.warn({ detail: kindOf(error), requestId: request.id }, 'a sign-in to the console failed')
        return reply.redirect('/console#failed', 303)
      }
    })
  }
  return {
    operatorOf(request) {
      if (!own.isOwnHost(request) || !own.isOwnPage(request)) return null
      const operator = sessions.of(request)
      if (operator === null) return null
      const { changes = true } = request.routeOptions.config
      return operator.role === 'viewer' && changes ? refuse('operator-only') : operator
    },
  }
}
