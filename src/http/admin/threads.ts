/** The routes for threads in the admin API: one thread, and its grants. */
import { z } from 'zod'
import { isScope, isThreadId } from '../../core/route/ids.ts'
import { isRefusal, refuse } from '../../core/reasons.ts'
import { BY_OPERATOR, MAX_GRANTS } from '../../core/decide/sharing.ts'
import type { GrantStore, StoredGrant } from '../../store/port/grants.ts'
import type { ThreadKey } from '../../store/port/thread.ts'
import { note, notFound, type AdminRefusal, type AdminRequest } from './answers.ts'
import { answer, type AddOperation } from './operations.ts'
import { grantSchema, threadSchema } from './schemas.ts'
import {
  GRANT_FORM,
  grantForm,
  granteeForm,
  granteeOf,
  granteeWord,
  grantOf,
  isTo,
  shownGrant,
  shownThread,
} from '../../operator/grant-form.ts'
import type { RowStore } from '../../store/port/administration.ts'

export interface AdminThreadParts {
  readonly store: GrantStore & Pick<RowStore, 'thread'>
  readonly issuers: () => readonly string[]
  readonly clock: () => number
}

const ID = 'The thread id, percent-encoded.'
const scope = z
  .string()
  .optional()
  .describe('Key of the upstream under `upstreams` or `agents`. Without it, the thread is one of `upstream`.')
const ON_GRANTS = { url: '/threads/:id/grants', about: ID, query: { scope } } as const

export function addThreadRoutes(addOperation: AddOperation, { store, issuers, clock }: AdminThreadParts): void {
  addOperation(
    {
      method: 'GET',
      url: '/threads/:id',
      id: 'showThread',
      action: 'thread',
      summary: 'Shows what the store has of a thread.',
      about: ID,
      query: { scope },
      answers: { 200: { description: 'The thread.', schema: threadSchema } },
      refusals: [400, 404, 503],
    },
    async (request) => {
      const key = readKey(request)
      if (isRefusal(key)) return key
      const found = await store.thread(key)
      return found === null ? notFound('Nothing is known of this thread.') : answer(200, shownThread(key, found))
    },
  )

  addOperation(
    {
      method: 'GET',
      ...ON_GRANTS,
      id: 'listGrants',
      action: 'grants',
      summary: 'Lists the grants on a thread.',
      answers: { 200: { description: 'All grants on the thread.', schema: z.strictObject({ grants: z.array(grantSchema) }) } },
      refusals: [400, 404, 503],
    },
    async (request) => {
      const key = readKey(request)
      if (isRefusal(key)) return key
      const grants = await store.grants(key, null)
      return grants === null ? NO_THREAD : answer(200, { grants: grants.map(shownGrant) })
    },
  )

  addOperation(
    {
      method: 'POST',
      ...ON_GRANTS,
      id: 'grant',
      action: 'grant',
      summary: 'Grants a user or a group access to a thread.',
      body: grantForm,
      form: GRANT_FORM,
      answers: {
        200: { description: 'It existed.', schema: grantSchema },
        201: { description: 'The grant.', schema: grantSchema },
      },
      refusals: [400, 404, 413, 415, 503],
    },
    async (request, read) => {
      const key = readKey(request)
      if (isRefusal(key)) return key
      const form = read()
      if (isRefusal(form)) return form
      const row = (await store.thread(key))?.row ?? null
      if (row === null) return NO_THREAD
      const asked = grantOf(form, issuers(), row.owner)
      if ('fault' in asked) return { ...refuse('grant-malformed'), text: asked.fault }
      const grant: StoredGrant = { ...asked, grantedBy: BY_OPERATOR, grantedAt: clock() }
      note(request, { target: granteeWord(grant), right: grant.right })
      // The grant requires the owner just read: given by another owner, it would mean nothing.
      switch (await store.grant(key, row.owner, grant)) {
        case 'not-owner':
          return NO_THREAD
        case 'too-many':
          return { ...refuse('grants-too-many'), text: `A thread has ${MAX_GRANTS} grants by operators at most.` }
        case 'done':
          return answer(201, shownGrant(grant), 'done')
        case 'unchanged': {
          const stored = (await store.grants(key, row.owner))?.find(isTo(grant))
          return answer(200, shownGrant(stored ?? grant), 'unchanged')
        }
      }
    },
  )

  addOperation(
    {
      method: 'DELETE',
      ...ON_GRANTS,
      id: 'removeGrant',
      action: 'ungrant',
      summary: 'Removes a grant.',
      body: granteeForm,
      form: GRANT_FORM,
      answers: { 204: { description: 'The grant is removed.' } },
      refusals: [400, 404, 413, 415, 503],
    },
    async (request, read) => {
      const key = readKey(request)
      if (isRefusal(key)) return key
      const form = read()
      if (isRefusal(form)) return form
      const grantee = granteeOf(form)
      note(request, { target: granteeWord(grantee) })
      const outcome = await store.ungrant(key, null, grantee)
      if (outcome === 'not-owner') return NO_THREAD
      if (outcome === 'unchanged') return { ...refuse('grant-unknown'), text: 'Nothing of the kind is granted.' }
      return answer(204, null, 'done')
    },
  )
}

const NO_THREAD = notFound('There is no such thread, or it has no owner.')

function readKey(request: AdminRequest): ThreadKey | AdminRefusal {
  const threadId = request.params.id
  if (!isThreadId(threadId)) return refuse('thread-id-invalid')
  const { scope = '' } = request.query
  if (!isScope(scope)) {
    return { ...refuse('query-encoding'), text: 'scope is the key of an upstream.' }
  }
  note(request, { thread: threadId, ...(scope === '' ? {} : { scope }) })
  return { scope, threadId }
}
