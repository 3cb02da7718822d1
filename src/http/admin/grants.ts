/**
 * Answers owners' requests for `…/threadwarden/threads/ID/grants`. The gateway answers them itself; the upstream never sees them.
 * The decision was made as for every route.
 */
import { callerKey } from '../../core/decide/callers.ts'
import { decide, isPermit, type Permit, type StandingFacts } from '../../core/decide/decide.ts'
import type { JsonObject } from '../../core/json/read.ts'
import { isRefusal, refuse, type Refusal } from '../../core/reasons.ts'
import type { Rate, Rules } from '../../core/decide/rules.ts'
import type { Limiter } from '../../limits/port.ts'
import type { Logger } from '../../observe/log.ts'
import type { GrantStore, StoredGrant, ThreadKey } from '../../store/port.ts'
import type { Answer } from '../pipeline/answer.ts'
import { threadKey } from '../pipeline/claims.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import { granteeWord, isTo, readGrant, readGrantee, shownGrant } from './grant-form.ts'
import type { OwnerRecords } from '../pipeline/owner-records.ts'
import type { Payload } from '../pipeline/payload.ts'

export interface GrantsParts {
  readonly store: GrantStore
  readonly records: Pick<OwnerRecords, 'record'>
  readonly rules: Rules
  readonly facts: StandingFacts
  readonly scope: string
  readonly issuers: readonly string[]
  readonly limiter: Limiter
  readonly limit: Rate | 'off'
  readonly log: Logger
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

export type Grants = (permit: Permit, payload: Payload, exchange: Exchange) => Promise<Answer | Refusal>

export function makeGrants(parts: GrantsParts): Grants {
  const { store, log } = parts

  /** The owner has changed since the decision: decides again, with what is known now. */
  const lost = async (permit: Permit, key: ThreadKey, exchange: Exchange): Promise<Refusal> => {
    const facts = { ...parts.facts, record: await parts.records.record(key, permit.principal) }
    exchange.facts = facts
    const decision = decide(permit.descriptor, permit.principal, parts.rules, facts)
    // A caller who may also change the new owner's grants has to repeat the request.
    return isRefusal(decision) ? decision : refuse('thread-foreign')
  }

  const list = async (permit: Permit, key: ThreadKey, exchange: Exchange): Promise<Answer | Refusal> => {
    const grants = await store.grants(key, permit.owner)
    return grants === null ? lost(permit, key, exchange) : answer(200, { grants: grants.map(shownGrant) })
  }

  const give = async (permit: Permit, key: ThreadKey, payload: Payload, exchange: Exchange): Promise<Answer | Refusal> => {
    const { owner, principal } = permit
    const asked = readGrant(bodyOf(payload), parts.issuers, owner)
    if ('fault' in asked) return refuse('grant-malformed')
    if (parts.limit !== 'off') {
      const limit = await parts.limiter.take('grants', callerKey(principal, exchange.address), parts.limit)
      if (limit !== null) return refuse('grants-limited', { limit })
    }
    const grant: StoredGrant = { ...asked, grantedBy: principal.id, grantedAt: parts.clock() }
    switch (await store.grant(key, owner, grant)) {
      case 'not-owner':
        return lost(permit, key, exchange)
      case 'too-many':
        return refuse('grants-too-many')
      case 'done':
        tell('a thread was shared', permit, exchange, { target: granteeWord(grant), right: grant.right })
        return answer(201, shownGrant(grant))
      case 'unchanged': {
        const threadAccess = (await store.grants(key, owner))?.find(isTo(grant))
        return answer(200, shownGrant(threadAccess ?? grant))
      }
    }
  }

  const takeBack = async (permit: Permit, key: ThreadKey, payload: Payload, exchange: Exchange): Promise<Answer | Refusal> => {
    const grantee = readGrantee(bodyOf(payload))
    if ('fault' in grantee) return refuse('grant-malformed')
    switch (await store.ungrant(key, permit.owner, grantee)) {
      case 'unchanged':
        return refuse('grant-unknown')
      case 'done':
        tell('a grant was taken back', permit, exchange, { target: granteeWord(grantee) })
        return { status: 204, headers: { 'cache-control': 'no-store' }, body: '' }
      default:
        return lost(permit, key, exchange)
    }
  }

  const tell = (what: string, { principal, owner }: Permit, exchange: Exchange, more: object): void => {
    const whose = owner === principal.id ? {} : { owner }
    log.info({ requestId: exchange.id, thread: exchange.threadId, principal: principal.id, ...whose, ...more }, what)
  }

  return async (permit, payload, exchange) => {
    if (!isPermit(permit)) throw new Error('nothing is granted without a permit')
    const key = threadKey(permit, parts.scope)
    if (key === null) throw new Error('grants of no thread')
    switch (permit.descriptor.route.method) {
      case 'GET':
        return list(permit, key, exchange)
      case 'POST':
        return give(permit, key, payload, exchange)
      case 'DELETE':
        return takeBack(permit, key, payload, exchange)
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
