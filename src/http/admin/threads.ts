/** The routes for threads in the operator API: one thread, and its grants. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isScope, isThreadId } from '../../core/route/ids.ts'
import { refuse } from '../../core/reasons.ts'
import { BY_OPERATOR, MAX_GRANTS } from '../../core/decide/sharing.ts'
import type { GrantStore, StoredGrant, ThreadAdministration, ThreadKey } from '../../store/port.ts'
import { note, notFound, objectOf, Refused, send, sendDone, type AuditLine } from './answers.ts'
import { granteeWord, isTo, readGrant, readGrantee, shownGrant, type FormFault } from '../../operator/grant-form.ts'
import { shownThread } from '../../operator/thread-form.ts'

export interface AdminThreadParts {
  readonly store: GrantStore & Pick<ThreadAdministration, 'thread'>
  readonly issuers: () => readonly string[]
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

type ThreadRequest = FastifyRequest<{ Params: { id: string }; Querystring: { scope?: string | string[] } }>

export function addThreadRoutes(app: FastifyInstance, parts: AdminThreadParts, audit: AuditLine): void {
  const { store } = parts

  const keyOf = (request: ThreadRequest): ThreadKey => {
    const threadId = request.params.id
    if (!isThreadId(threadId)) throw new Refused(refuse('thread-id-invalid'))
    const { scope = '' } = request.query
    if (typeof scope !== 'string' || !isScope(scope))
      throw new Refused(refuse('query-encoding'), 'scope is the key of an upstream.')
    note(request, { thread: threadId, ...(scope === '' ? {} : { scope }) })
    return { scope, threadId }
  }

  app.get('/threads/:id', async (request: ThreadRequest, reply) => {
    const found = await store.thread(keyOf(request))
    if (found === null) throw notFound('Nothing is known of this thread.')
    return send(reply, 200, shownThread(request.params.id, found))
  })

  app.get('/threads/:id/grants', async (request: ThreadRequest, reply) => {
    const grants = await store.grants(keyOf(request), null)
    if (grants === null) throw noThread()
    return send(reply, 200, { grants: grants.map(shownGrant) })
  })

  app.post('/threads/:id/grants', async (request: ThreadRequest, reply) => {
    const key = keyOf(request)
    const body = objectOf(request)
    const row = (await store.thread(key))?.row ?? null
    if (row === null) throw noThread()
    const grant: StoredGrant = {
      ...read(readGrant(body, parts.issuers(), row.owner)),
      grantedBy: BY_OPERATOR,
      grantedAt: parts.clock(),
    }
    note(request, { target: granteeWord(grant), right: grant.right })
    // The grant requires the owner just read: given by another owner, it would mean nothing.
    const outcome = await store.grant(key, row.owner, grant)
    if (outcome === 'not-owner') throw noThread()
    if (outcome === 'too-many')
      throw new Refused(refuse('grants-too-many'), `A thread has ${MAX_GRANTS} grants by operators at most.`)
    const threadAccess = outcome === 'done' ? grant : (await store.grants(key, row.owner))?.find(isTo(grant))
    audit(request, outcome)
    return send(reply, outcome === 'done' ? 201 : 200, shownGrant(threadAccess ?? grant))
  })

  app.delete('/threads/:id/grants', async (request: ThreadRequest, reply) => {
    const key = keyOf(request)
    const grantee = read(readGrantee(objectOf(request)))
    note(request, { target: granteeWord(grantee) })
    const outcome = await store.ungrant(key, null, grantee)
    if (outcome === 'not-owner') throw noThread()
    if (outcome === 'unchanged') throw new Refused(refuse('grant-unknown'), 'Nothing of the kind is granted.')
    audit(request, 'done')
    return sendDone(reply)
  })
}

const noThread = (): Refused => notFound('There is no such thread, or it has no owner.')

function read<Form extends object>(form: Form | FormFault): Form {
  if ('fault' in form) throw new Refused(refuse('grant-malformed'), form.fault)
  return form
}
