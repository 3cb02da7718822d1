/** The routes for revocations in the admin API. */
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { isRefusal, refuse } from '../../core/reasons.ts'
import type { RevocationList, RevocationStore, Revoked } from '../../store/port/revocations.ts'
import { note, notFound, type AdminRefusal } from './answers.ts'
import { answer, type AddOperation, type AnswerOf } from './operations.ts'
import { revocationSchema } from './schemas.ts'
import { isTokenId, revocationOf, shown, timeOf, unknownIssuer, userFault, wordFor } from '../../operator/revocation-form.ts'

export interface AdminRevocationParts {
  readonly store: RevocationStore
  readonly revocations: Pick<RevocationList, 'current' | 'reload'>
  readonly issuers: () => readonly string[]
  readonly clock: () => number
}

const FORM = 'Write {"tokenId": "…"}, or {"user": "issuer:subject"} with or without "before": "2026-01-31T12:00:00Z".'
const TOKEN_ID = 'tokenId is the jti of a token: 1 to 1024 characters.'
const USER = 'user is a user id: issuer:subject.'
const TIME = 'before is a time with its zone: 2026-01-31T12:00:00Z.'

const revocationForm = z
  .strictObject(
    {
      tokenId: z
        .string(TOKEN_ID)
        .refine(isTokenId, TOKEN_ID)
        .optional()
        .meta({ description: 'The `jti` of the token.', minLength: 1, maxLength: 1024 }),
      user: z
        .string(USER)
        .refine((text) => userFault(text, []) !== 'form', USER)
        .optional()
        .describe('User id, `issuer:subject`. The issuer must be configured.'),
      before: z
        .string(TIME)
        .refine((text) => timeOf(text) !== null, TIME)
        .optional()
        .meta({
          description: 'Only tokens issued before this time. Without it, all tokens of the user, also future ones.',
          format: 'date-time',
        }),
    },
    FORM,
  )
  .refine(
    ({ tokenId, user, before }) =>
      (tokenId === undefined) !== (user === undefined) && (user !== undefined || before === undefined),
    FORM,
  )
  .meta({ override: { oneOf: [{ required: ['tokenId'] }, { required: ['user'] }] } })

export function addRevocationRoutes(
  addOperation: AddOperation,
  { store, revocations, issuers, clock }: AdminRevocationParts,
): void {
  const lift = async (request: FastifyRequest, what: Revoked): Promise<Lifted | AdminRefusal> => {
    note(request, { target: wordFor(what) })
    if (!(await store.lift(what))) return notFound('Nothing of the kind is revoked.')
    await revocations.reload()
    return answer(204, null, 'done')
  }

  addOperation(
    {
      method: 'GET',
      url: '/revocations',
      id: 'listRevocations',
      action: 'list',
      summary: 'Lists all revocations.',
      answers: { 200: { description: 'All revocations.', schema: z.strictObject({ revocations: z.array(revocationSchema) }) } },
      refusals: [503],
    },
    async () => answer(200, { revocations: (await store.revocations()).map(shown) }),
  )
  addOperation(
    {
      method: 'POST',
      url: '/revocations',
      id: 'revoke',
      action: 'revoke',
      summary: 'Revokes a token, or tokens of a user.',
      body: revocationForm,
      form: FORM,
      answers: {
        201: {
          description:
            'The stored revocation. The wider one stays if there were two of one user. Empty if it was lifted meanwhile.',
          schema: z.union([revocationSchema, z.strictObject({})]),
        },
      },
      refusals: [400, 413, 415, 503],
    },
    async (request, read) => {
      const form = read()
      const order = isRefusal(form) ? form : orderOf(form, issuers())
      if (isRefusal(order)) return order
      const { what, before } = order
      note(request, { target: wordFor(what) })
      const revokedAt = clock()
      await store.revoke('tokenId' in what ? { kind: 'token', ...what, revokedAt } : { kind: 'user', ...what, before, revokedAt })
      // The order is done when this process applies it: if the list can't be read back, the operator has to repeat the order.
      await revocations.reload()
      const stored = revocationOf(what, revocations.current())
      // Another operator may have lifted it since; then there is nothing to show.
      return answer(201, stored === undefined ? {} : shown(stored), 'done')
    },
  )
  const addLift = (kind: 'token' | 'user', id: string, about: string, whatOf: (id: string) => Revoked): void =>
    addOperation(
      {
        method: 'DELETE',
        url: `/revocations/${kind}/:id`,
        id,
        action: 'lift',
        summary: `Lifts the revocation of a ${kind}.`,
        about,
        answers: LIFTED,
        refusals: [400, 404, 413, 415, 503],
      },
      (request) => lift(request, whatOf(request.params.id)),
    )
  addLift('token', 'liftToken', 'The `jti`, percent-encoded.', (tokenId) => ({ tokenId }))
  addLift('user', 'liftUser', 'The user id, percent-encoded.', (userId) => ({ userId }))
}

const LIFTED = { 204: { description: 'The revocation is lifted.' } } as const
type Lifted = AnswerOf<typeof LIFTED>

interface Order {
  readonly what: Revoked
  /** Milliseconds since the epoch: tokens issued before it; null for all of the user's tokens. */
  readonly before: number | null
}

function orderOf(
  { tokenId, user = '', before }: z.output<typeof revocationForm>,
  issuers: readonly string[],
): Order | AdminRefusal {
  if (tokenId !== undefined) return { what: { tokenId }, before: null }
  if (userFault(user, issuers) !== null) {
    return { ...refuse('body-unexpected'), text: unknownIssuer(issuers) }
  }
  return { what: { userId: user }, before: before === undefined ? null : timeOf(before) }
}
