/** Grants where the thread changes hands between the decision and the store: decided again, with what is known then. */
import { test } from 'tap'
import { authorized } from '../../testing/support/requests.ts'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, type OwnerRecord, type Permit, type StandingFacts } from '../../src/core/decide/decide.ts'
import type { Rules } from '../../src/core/decide/rules.ts'
import { makeGrants } from '../../src/http/admin/grants.ts'
import type { Payload } from '../../src/http/pipeline/stages.ts'
import { makeMemoryLimiter } from '../../src/limits/memory.ts'
import { makeLog } from '../../src/observe/log.ts'
import type { GrantOutcome, GrantStore, StoredGrant } from '../../src/store/port/grants.ts'
import { rulesOf } from '../../testing/support/rules-of.ts'
import { user } from '../../testing/support/callers.ts'

const ALICE = user('alice')
const FACTS: StandingFacts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' }
const OWN: OwnerRecord = { owner: 'corp:alice', deleted: false }
const OWN_ONLY = rulesOf({ 'threads/grants': [{ threads: ['own'] }] })
const HIDING = rulesOf({ 'threads/grants': [{ threads: ['own'] }] }, { hide: true })
const ANYBODYS = rulesOf({ 'threads/grants': [{ threads: ['own', 'foreign'] }] })

const BODY: Payload = { kind: 'own', body: { user: 'corp:bob', right: 'read' } }
const BOB: Payload = { kind: 'own', body: { user: 'corp:bob' } }

/** What the store says of each step, and whom it was asked for. */
interface Played {
  readonly outcome?: GrantOutcome
  readonly grants?: readonly StoredGrant[] | null
  readonly asked?: (string | null)[]
}

/** Asks for grants of t-1 as alice, to whom it belonged when that was decided; then the store says this, and the record is that. */
async function asked(method: string, payload: Payload, played: Played, now: OwnerRecord, rules: Rules = OWN_ONLY) {
  const descriptor = classify(method, ['threadwarden', 'threads', 't-1', 'grants'], new Map()) as RouteDescriptor
  const permit = decide(descriptor, ALICE, rules, { ...FACTS, record: OWN }) as Permit
  const { outcome = 'not-owner', grants = null, asked: owners = [] } = played
  const noting = async <Result>(owner: string | null, result: Result): Promise<Result> => {
    owners.push(owner)
    return result
  }
  const store: GrantStore = {
    grants: (_key, owner) => noting(owner, grants),
    grant: (_key, owner) => noting(owner, outcome),
    ungrant: (_key, owner) => noting(owner, outcome),
    grantedTo: async () => [],
  }
  const request = authorized(permit, { payload })
  const answer = makeGrants({
    store,
    records: { record: async () => now },
    rules,
    facts: FACTS,
    scope: '',
    issuers: ['corp'],
    limiter: makeMemoryLimiter(),
    limit: 'off',
    log: makeLog('silent'),
    clock: () => 0,
  })
  const given = await answer(request)
  return { given, facts: request.exchange.record.facts }
}

void test('a thread that is another’s by now is refused like any other of theirs, whatever was asked', async (t) => {
  const record = { owner: 'corp:carol', deleted: false }
  for (const [method, payload] of [
    ['GET', { kind: 'none' }],
    ['POST', BODY],
    ['DELETE', BOB],
  ] as const) {
    const owners: string[] = []
    const { given, facts } = await asked(method, payload, { asked: owners }, record)
    t.match(given, { outcome: 'refused', reason: 'thread-foreign', code: 'not-owner' }, method)
    t.same(facts, { ...FACTS, record }, 'the decision says what it went by')
    t.same(owners, ['corp:alice'], 'and nothing was done to a thread of another owner')
  }
})

void test('it is told as the policy tells it', async (t) => {
  const { given } = await asked('POST', BODY, {}, { owner: 'corp:carol', deleted: false }, HIDING)
  t.match(given, { reason: 'thread-foreign', code: 'not-found' })
})

void test('a thread that was deleted meanwhile is nobody’s to share', async (t) => {
  const { given } = await asked('POST', BODY, {}, { owner: 'corp:alice', deleted: true })
  t.match(given, { reason: 'thread-unknown', code: 'not-owner' })
})

void test('who may share the other owner’s as well has to say so again', async (t) => {
  for (const record of [{ owner: 'corp:carol', deleted: false }, OWN]) {
    const { given } = await asked('POST', BODY, {}, record, ANYBODYS)
    t.match(given, { outcome: 'refused', reason: 'thread-foreign' })
  }
})

void test('a grant that was there is told as it stands there, or as it was if it is gone again', async (t) => {
  const before = { kind: 'user', id: 'corp:bob', right: 'read', grantedBy: 'operator', grantedAt: 5 } as const
  const group = { ...before, kind: 'group' } as const
  for (const [grants, grantedBy] of [
    [[group, before], 'operator'],
    [[group], 'corp:alice'],
    [null, 'corp:alice'],
  ] as const) {
    const { given } = await asked('POST', BODY, { outcome: 'unchanged', grants }, OWN)
    t.match(given, { status: 200, body: new RegExp(`^\\{"user":"corp:bob","right":"read","grantedBy":"${grantedBy}"`) })
  }
})

void test('nothing is granted without a permit of the decision’s', async (t) => {
  const descriptor = classify('POST', ['threadwarden', 'threads', 't-1', 'grants'], new Map()) as RouteDescriptor
  const real = decide(descriptor, ALICE, OWN_ONLY, { ...FACTS, record: OWN }) as Permit
  const answer = makeGrants({
    store: {} as GrantStore,
    records: { record: async () => OWN },
    rules: OWN_ONLY,
    facts: FACTS,
    scope: '',
    issuers: ['corp'],
    limiter: makeMemoryLimiter(),
    limit: 'off',
    log: makeLog('silent'),
    clock: () => 0,
  })
  await t.rejects(answer(authorized(Object.assign({}, real), { payload: BODY })), /without a permit/)
})
