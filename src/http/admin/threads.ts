/** The routes for threads in the admin API: one thread, and its grants. */
import { isScope, isThreadId } from '../../core/route/ids.ts'
import { isRefusal, refuse } from '../../core/reasons.ts'
import { BY_OPERATOR, MAX_GRANTS } from '../../core/decide/sharing.ts'
import type { GrantStore, StoredGrant } from '../../store/port/grants.ts'
import type { ThreadKey } from '../../store/port/thread.ts'
import { note, notFound, readBody, type AddRoute, type AdminAnswer, type AdminRefusal, type AdminRequest } from './answers.ts'
import { granteeWord, isTo, readGrant, readGrantee, shownGrant, shownThread } from '../../operator/grant-form.ts'
import type { RowStore } from '../../store/port/administration.ts'

export interface AdminThreadParts {
  readonly store: GrantStore & Pick<RowStore, 'thread'>
  readonly issuers: () => readonly string[]
  readonly clock: () => number
}

export function addThreadRoutes(addRoute: AddRoute, { store, issuers, clock }: AdminThreadParts): void {
  const addThreadRoute = (
    method: 'GET' | 'POST' | 'DELETE',
    path: '' | '/grants',
    action: string,
    handle: (key: ThreadKey, request: AdminRequest) => Promise<AdminAnswer | AdminRefusal>,
  ): void =>
    addRoute(method, `/threads/:id${path}`, action, async (request) => {
      const key = readKey(request)
      return isRefusal(key) ? key : handle(key, request)
    })

  addThreadRoute('GET', '', 'thread', async (key) => {
    const found = await store.thread(key)
    return found === null ? notFound('Nothing is known of this thread.') : { status: 200, body: shownThread(key.threadId, found) }
  })

  addThreadRoute('GET', '/grants', 'grants', async (key) => {
    const grants = await store.grants(key, null)
    return grants === null ? NO_THREAD : { status: 200, body: { grants: grants.map(shownGrant) } }
  })

  addThreadRoute('POST', '/grants', 'grant', async (key, request) => {
    const reading = readBody(request)
    if (isRefusal(reading)) return reading
    const row = (await store.thread(key))?.row ?? null
    if (row === null) return NO_THREAD
    const asked = readGrant(reading.value, issuers(), row.owner)
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
        return { status: 201, body: shownGrant(grant), change: 'done' }
      case 'unchanged': {
        const stored = (await store.grants(key, row.owner))?.find(isTo(grant))
        return { status: 200, body: shownGrant(stored ?? grant), change: 'unchanged' }
      }
    }
  })

  addThreadRoute('DELETE', '/grants', 'ungrant', async (key, request) => {
    const reading = readBody(request)
    if (isRefusal(reading)) return reading
    const grantee = readGrantee(reading.value)
    if ('fault' in grantee) return { ...refuse('grant-malformed'), text: grantee.fault }
    note(request, { target: granteeWord(grantee) })
    const outcome = await store.ungrant(key, null, grantee)
    if (outcome === 'not-owner') return NO_THREAD
    if (outcome === 'unchanged') return { ...refuse('grant-unknown'), text: 'Nothing of the kind is granted.' }
    return { status: 204, body: null, change: 'done' }
  })
}

const NO_THREAD = notFound('There is no such thread, or it has no owner.')

function readKey(request: AdminRequest): ThreadKey | AdminRefusal {
  const threadId = request.params.id
  if (!isThreadId(threadId)) return refuse('thread-id-invalid')
  const { scope = '' } = request.query
  if (typeof scope !== 'string' || !isScope(scope)) {
    return { ...refuse('query-encoding'), text: 'scope is the key of an upstream.' }
  }
  note(request, { thread: threadId, ...(scope === '' ? {} : { scope }) })
  return { scope, threadId }
}
