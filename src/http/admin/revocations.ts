/** The routes for revocations in the admin API. */
import type { FastifyRequest } from 'fastify'
import type { Json, JsonObject } from '../../core/json/read.ts'
import { isRefusal, refuse } from '../../core/reasons.ts'
import type { RevocationList, RevocationStore, Revoked } from '../../store/port/revocations.ts'
import { bodyRefusal, note, notFound, readBody, type AddRoute, type AdminAnswer, type AdminRefusal } from './answers.ts'
import { isTokenId, revocationOf, shown, timeOf, userFault, wordFor } from '../../operator/revocation-form.ts'

export interface AdminRevocationParts {
  readonly store: RevocationStore
  readonly revocations: Pick<RevocationList, 'current' | 'reload'>
  readonly issuers: () => readonly string[]
  readonly clock: () => number
}

export function addRevocationRoutes(addRoute: AddRoute, { store, revocations, issuers, clock }: AdminRevocationParts): void {
  const lift = async (request: FastifyRequest, what: Revoked): Promise<AdminAnswer | AdminRefusal> => {
    const refusal = bodyRefusal(request)
    if (refusal !== null) return refusal
    note(request, { target: wordFor(what) })
    if (!(await store.lift(what))) return notFound('Nothing of the kind is revoked.')
    await revocations.reload()
    return { status: 204, body: null, change: 'done' }
  }

  addRoute('GET', '/revocations', 'list', async () => ({
    status: 200,
    body: { revocations: (await store.revocations()).map(shown) },
  }))
  addRoute('POST', '/revocations', 'revoke', async (request) => {
    const reading = readBody(request)
    const order = isRefusal(reading) ? { ...reading, text: FORM } : readOrder(reading.value, issuers())
    if (isRefusal(order)) return order
    const { what, before } = order
    note(request, { target: wordFor(what) })
    const revokedAt = clock()
    await store.revoke('tokenId' in what ? { kind: 'token', ...what, revokedAt } : { kind: 'user', ...what, before, revokedAt })
    // The order is done when this process applies it: if the list can't be read back, the operator has to repeat the order.
    await revocations.reload()
    const stored = revocationOf(what, revocations.current())
    // Another operator may have lifted it since; then there is nothing to show.
    return { status: 201, body: stored === undefined ? {} : shown(stored), change: 'done' }
  })
  addRoute('DELETE', '/revocations/token/:id', 'lift', (request) => lift(request, { tokenId: request.params.id }))
  addRoute('DELETE', '/revocations/user/:id', 'lift', (request) => lift(request, { userId: request.params.id }))
}

interface Order {
  readonly what: Revoked
  /** Milliseconds since the epoch: tokens issued before it; null for all of the user's tokens. */
  readonly before: number | null
}

const FORM = 'Write {"tokenId": "…"}, or {"user": "issuer:subject"} with or without "before": "2026-01-31T12:00:00Z".'

/** Reads a body strictly: an operator may rely on an unknown key. */
function readOrder({ tokenId, user, before, ...others }: JsonObject, issuers: readonly string[]): Order | AdminRefusal {
  if (Object.keys(others).length > 0 || (tokenId === undefined) === (user === undefined)) return wrong(FORM)
  return user === undefined ? tokenOrder(tokenId, before) : userOrder(user, before, issuers)
}

function tokenOrder(tokenId: Json | undefined, before: Json | undefined): Order | AdminRefusal {
  if (before !== undefined) return wrong(FORM)
  if (typeof tokenId !== 'string' || !isTokenId(tokenId)) return wrong('tokenId is the jti of a token: 1 to 1024 characters.')
  return { what: { tokenId }, before: null }
}

function userOrder(user: Json, before: Json | undefined, issuers: readonly string[]): Order | AdminRefusal {
  const fault = typeof user === 'string' ? userFault(user, issuers) : 'form'
  if (typeof user !== 'string' || fault === 'form') return wrong('user is a user id: issuer:subject.')
  if (fault !== null) return wrong(`The configuration has no issuer of this key. It has: ${issuers.join(', ')}.`)
  if (before === undefined) return { what: { userId: user }, before: null }
  const time = typeof before === 'string' ? timeOf(before) : null
  return time === null ? wrong('before is a time with its zone: 2026-01-31T12:00:00Z.') : { what: { userId: user }, before: time }
}

/** The text must not quote the body. */
function wrong(text: string): AdminRefusal {
  return { ...refuse('body-unexpected'), text }
}
