/** The routes for revocations in the operator API. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isRefusal } from '../../core/reasons.ts'
import type { RevocationList, RevocationStore, Revoked } from '../../store/port.ts'
import { note, notFound, Refused, send, sendDone, withoutBody, type AuditLine } from './answers.ts'
import { readOrder } from './order.ts'
import { revocationOf, shown, wordFor } from '../../operator/revocation-form.ts'

export interface AdminRevocationParts {
  readonly store: RevocationStore
  readonly revocations: Pick<RevocationList, 'current' | 'reload'>
  readonly issuers: () => readonly string[]
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

export function addRevocationRoutes(app: FastifyInstance, parts: AdminRevocationParts, audit: AuditLine): void {
  const { store } = parts
  const lift = async (request: FastifyRequest, reply: FastifyReply, what: Revoked): Promise<FastifyReply> => {
    withoutBody(request)
    note(request, { target: wordFor(what) })
    if (!(await store.lift(what))) throw notFound('Nothing of the kind is revoked.')
    await parts.revocations.reload()
    audit(request, 'done')
    return sendDone(reply)
  }

  app.get('/revocations', async (_request, reply) => send(reply, 200, { revocations: (await store.revocations()).map(shown) }))
  app.post('/revocations', async (request, reply) => {
    const order = readOrder(request.body as Buffer | undefined, parts.issuers())
    if (isRefusal(order)) throw new Refused(order, order.text)
    const { what, before } = order
    note(request, { target: wordFor(what) })
    const revokedAt = parts.clock()
    await store.revoke('tokenId' in what ? { kind: 'token', ...what, revokedAt } : { kind: 'user', ...what, before, revokedAt })
    // The order is done when this process applies it: if the list can't be read back, the operator has to repeat the order.
    await parts.revocations.reload()
    const stored = revocationOf(what, parts.revocations.current())
    audit(request, 'done')
    // Another operator may have lifted it since; then there is nothing to show.
    return send(reply, 201, stored === undefined ? {} : shown(stored))
  })
  app.delete<{ Params: { id: string } }>('/revocations/token/:id', (request, reply) =>
    lift(request, reply, { tokenId: request.params.id }),
  )
  app.delete<{ Params: { id: string } }>('/revocations/user/:id', (request, reply) =>
    lift(request, reply, { userId: request.params.id }),
  )
}
