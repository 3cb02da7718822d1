/** Answers owners' requests for `…/threadwarden/threads/ID/grants`. The upstream never sees them. */
import { decide, isPermit, type StandingFacts } from '../../core/decide/decide.ts'
import type { JsonObject } from '../../core/json/read.ts'
import { isRefusal, refuse, type Refusal } from '../../core/reasons.ts'
import type { Rates } from '../../core/decide/limits.ts'
import type { Rules } from '../../core/decide/rules.ts'
import type { Limiter } from '../../limits/port.ts'
import type { Logger } from '../../observe/log.ts'
import type { GrantStore, StoredGrant } from '../../store/port/grants.ts'
import type { ThreadKey } from '../../store/port/thread.ts'
import type { Answer } from '../pipeline/answer.ts'
import { granteeWord, isTo, readGrant, readGrantee, shownGrant } from '../../operator/grant-form.ts'
import type { OwnerRecords } from '../pipeline/authorization.ts'
import { takeRates } from '../pipeline/limit-leases.ts'
import { threadKey } from '../pipeline/settlement.ts'
import type { Authorized, Payload } from '../pipeline/stages.ts'

export interface GrantsParts {
  readonly store: Pick<GrantStore, 'grants' | 'grant' | 'ungrant'>
  readonly records: Pick<OwnerRecords, 'record'>
  readonly rules: Rules
  readonly facts: StandingFacts
  readonly scope: string
  readonly issuers: readonly string[]
  readonly limiter: Limiter
  readonly limit: Rates
  readonly log: Logger
  readonly clock: () => number
}

export type Grants = (request: Authorized) => Promise<Answer | Refusal>

export function makeGrants(parts: GrantsParts): Grants {
  const { store, log } = parts

  /** The owner has changed since the decision: decides again with the current facts. */
  const lost = async ({ permit, exchange }: Authorized, key: ThreadKey): Promise<Refusal> => {
    const facts = { ...parts.facts, record: await parts.records.record(key, permit.principal) }
    exchange.record.facts = facts
    const decision = decide(permit.descriptor, permit.principal, parts.rules, facts)
    // A caller who may also change the new owner's grants has to repeat the request.
    return isRefusal(decision) ? decision : refuse('thread-foreign')
  }

  const list = async (request: Authorized, key: ThreadKey): Promise<Answer | Refusal> => {
    const grants = await store.grants(key, request.permit.owner)
    return grants === null ? lost(request, key) : answer(200, { grants: grants.map(shownGrant) })
  }

  const give = async (request: Authorized, key: ThreadKey): Promise<Answer | Refusal> => {
    const { owner, principal } = request.permit
    const asked = readGrant(bodyOf(request.payload), parts.issuers, owner)
    if ('fault' in asked) return refuse('grant-malformed')
    const limit = await takeRates(parts.limiter, 'grants', parts.limit, { principal, caller: request.caller.key })
    if (limit !== null) return refuse('grants-limited', { limit })
    const grant: StoredGrant = { ...asked, grantedBy: principal.id, grantedAt: parts.clock() }
    switch (await store.grant(key, owner, grant)) {
      case 'not-owner':
        return lost(request, key)
      case 'too-many':
        return refuse('grants-too-many')
      case 'done':
        tell('a thread was shared', request, { target: granteeWord(grant), right: grant.right })
        return answer(201, shownGrant(grant))
      case 'unchanged': {
        const threadAccess = (await store.grants(key, owner))?.find(isTo(grant))
        return answer(200, shownGrant(threadAccess ?? grant))
      }
    }
  }

  const takeBack = async (request: Authorized, key: ThreadKey): Promise<Answer | Refusal> => {
    const grantee = readGrantee(bodyOf(request.payload))
    if ('fault' in grantee) return refuse('grant-malformed')
    switch (await store.ungrant(key, request.permit.owner, grantee)) {
      case 'unchanged':
        return refuse('grant-unknown')
      case 'done':
        tell('a grant was taken back', request, { target: granteeWord(grantee) })
        return { status: 204, headers: { 'cache-control': 'no-store' }, body: '' }
      default:
        return lost(request, key)
    }
  }

  const tell = (what: string, { permit: { principal, owner, descriptor }, exchange }: Authorized, more: object): void => {
    const whose = owner === principal.id ? {} : { owner }
    log.info({ requestId: exchange.head.id, thread: descriptor.ids.threadId, principal: principal.id, ...whose, ...more }, what)
  }

  return async (request) => {
    const { permit } = request
    if (!isPermit(permit)) throw new Error('nothing is granted without a permit')
    const key = threadKey(permit, parts.scope)
    if (key === null) throw new Error('grants of no thread')
    switch (permit.descriptor.route.method) {
      case 'GET':
        return list(request, key)
      case 'POST':
        return give(request, key)
      case 'DELETE':
        return takeBack(request, key)
      default:
        throw new Error('no method of grants')
    }
  }
}

function bodyOf(payload: Payload): JsonObject {
  return payload.kind === 'own' ? payload.body : {}
}

function answer(status: number, value: object): Answer {
  return { status, headers: { 'content-type': 'application/json', 'cache-control': 'no-store' }, body: JSON.stringify(value) }
}
