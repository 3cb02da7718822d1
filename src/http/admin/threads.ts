/** The routes for threads in the admin API: one thread, and its grants. */
import { z } from 'zod'
import { isScope, isThreadId } from '../../core/route/ids.ts'
import { isRefusal, refuse } from '../../core/reasons.ts'
import { BY_OPERATOR, MAX_GRANTS } from '../../core/decide/sharing.ts'
import type { GrantStore, StoredGrant } from '../../store/port/grants.ts'
import { NOBODY, type ThreadKey } from '../../store/port/thread.ts'
import { note, notFound, type AdminRefusal, type AdminRequest } from './answers.ts'
import { answer, type AddOperation } from './operations.ts'
import { grantSchema, threadRowSchema, threadSchema } from './schemas.ts'
import {
  GRANT_FORM,
  grantForm,
  granteeForm,
  granteeOf,
  granteeWord,
  grantOf,
  isTo,
  shownGrant,
  shownRow,
  shownThread,
} from '../../operator/grant-form.ts'
import { unknownIssuer, userFault } from '../../operator/revocation-form.ts'
import type { AssignmentStore, RowFilter, RowStore } from '../../store/port/administration.ts'

export interface AdminThreadParts {
  readonly store: GrantStore & Pick<RowStore, 'thread' | 'threads'> & AssignmentStore
  readonly issuers: () => readonly string[]
  readonly clock: () => number
}

const ID = 'The thread id, percent-encoded.'
const scope = z
  .string()
  .optional()
  .describe('Key of the upstream under `upstreams` or `agents`. Without it, the thread is one of `upstream`.')
const ON_OWNER = { url: '/threads/:id/owner', about: ID, query: { scope } } as const
const ON_GRANTS = { url: '/threads/:id/grants', about: ID, query: { scope } } as const

const PAGE = 100
const OWNER_FORM = 'Write {"user": "issuer:subject"}, with or without "expected": "issuer:subject".'

const LIST_QUERY = {
  user: z.string().min(1).optional().describe('Only threads of this user.'),
  agent: z.string().min(1).optional().describe('Only threads of this agent.'),
  scope: z.string().optional().describe('Only threads of the upstream with this key; all by default.'),
  deleted: z.enum(['no', 'only', 'too']).optional().describe('Whether deleted threads are listed; `no` by default.'),
  after: z.string().min(1).optional().describe('`next` of the page before.'),
}

const ownerForm = z.strictObject(
  {
    user: z.string(OWNER_FORM).describe('The new owner, `issuer:subject`. The issuer must be configured.'),
    expected: z.string(OWNER_FORM).optional().describe('Changes nothing unless this user is the owner.'),
  },
  OWNER_FORM,
)

export function addThreadRoutes(addOperation: AddOperation, { store, issuers, clock }: AdminThreadParts): void {
  addOperation(
    {
      method: 'GET',
      url: '/threads',
      id: 'listThreads',
      action: 'threads',
      summary: `Lists threads, ${PAGE} on a page.`,
      query: LIST_QUERY,
      answers: {
        200: {
          description: 'A page, in the order of the ids.',
          schema: z.strictObject({
            threads: z.array(threadRowSchema),
            next: z.string().nullable().describe('For `after`, to get the next page; null on the last.'),
          }),
        },
      },
      refusals: [400, 503],
    },
    async ({ query }) => {
      const read = z.strictObject(LIST_QUERY).safeParse(query)
      const after = read.data?.after === undefined ? null : keyIn(read.data.after)
      if (!read.success || after === undefined)
        return { ...refuse('query-encoding'), text: 'A parameter of the list is malformed.' }
      const { user, agent, scope: only, deleted = 'no' } = read.data
      const filter: RowFilter = {
        deleted,
        ...(user === undefined ? {} : { owner: user }),
        ...(agent === undefined ? {} : { agentId: agent }),
        ...(only === undefined ? {} : { scope: only }),
      }
      const rows = await store.threads(filter, after, PAGE + 1)
      const page = rows.slice(0, PAGE)
      const last = rows.length > PAGE ? page.at(-1) : undefined
      return answer(200, { threads: page.map((row) => shownRow(row, row)), next: last === undefined ? null : pageAfter(last) })
    },
  )

  addOperation(
    {
      method: 'POST',
      ...ON_OWNER,
      id: 'assignThread',
      action: 'assign',
      summary: 'Gives a thread another owner. Removes its grants, and restores a deleted thread.',
      body: ownerForm,
      form: OWNER_FORM,
      answers: {
        200: {
          description: 'The user is the owner.',
          schema: z.strictObject({ before: z.string().nullable().describe('The owner before; null if there was none.') }),
        },
        409: {
          description: 'Another user is the owner than expected. Nothing was changed.',
          schema: z.strictObject({ owner: z.string().nullable() }),
        },
      },
      refusals: [400, 413, 415, 503],
    },
    async (request, read) => {
      const key = readKey(request)
      if (isRefusal(key)) return key
      const form = read()
      if (isRefusal(form)) return form
      const fault = userFault(form.user, issuers())
      if (fault !== null) return { ...refuse('body-unexpected'), text: fault === 'form' ? OWNER_FORM : unknownIssuer(issuers()) }
      note(request, { target: `user:${form.user}` })
      const result = await store.assign(key, form.user, clock(), form.expected)
      switch (result.outcome) {
        case 'changed':
          return answer(409, { owner: result.owner === NOBODY ? null : result.owner }, 'refused')
        case 'same':
          return answer(200, { before: form.user }, 'unchanged')
        case 'assigned':
          return answer(200, { before: result.before === NOBODY ? null : result.before }, 'done')
      }
    },
  )

  addOperation(
    {
      method: 'DELETE',
      ...ON_OWNER,
      id: 'removeOwner',
      action: 'withhold',
      summary: 'Removes the owner and the grants of a thread, which is then foreign to every user until it is assigned.',
      answers: { 204: { description: 'The thread has no owner.' } },
      refusals: [400, 404, 413, 415, 503],
    },
    async (request) => {
      const key = readKey(request)
      if (isRefusal(key)) return key
      return (await store.withhold(key, clock())) ? answer(204, null, 'done') : NO_THREAD
    },
  )

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

/** Scopes and ids have no line breaks. */
function pageAfter({ scope, threadId }: ThreadKey): string {
  return Buffer.from(`${scope}\n${threadId}`).toString('base64url')
}

function keyIn(after: string): ThreadKey | undefined {
  const [key, threadId, ...more] = Buffer.from(after, 'base64url').toString('utf8').split('\n')
  return key === undefined || threadId === undefined || more.length > 0 || !isThreadId(threadId) || !isScope(key)
    ? undefined
    : { scope: key, threadId }
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
