/** Shared threads: what a grant opens on which route, to whom, and where it does not count. */
import { test } from 'tap'
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, listingFor, neededRight, relationOf, type Facts, type OwnerRecord } from '../../src/core/decide/decide.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../../src/core/decide/principal.ts'
import { ALL_ROUTES, ROUTE_IDS } from '../../src/core/route/all-routes.ts'
import type { Relation, Rule, Rules } from '../../src/core/decide/rules.ts'
import type { NeededRight, Right } from '../../src/core/decide/sharing.ts'
import { user } from '../../testing/support/callers.ts'
import { descriptor } from '../../testing/support/policies.ts'
import { rulesOf } from '../../testing/support/rules-of.ts'

const FACTS: Facts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' }
const alice = user('alice')
const olga = user('olga', { roles: ['operator'] })

/** Everything is open to everybody on own and shared threads, so that only what was granted makes a difference. */
const OPEN = opening(['own', 'shared'])
function opening(threads: Rule['threads'], more: Partial<Rule> = {}): Rules {
  const rule = { who: ['signed-in', 'anonymous'] as const, threads, ...more }
  return rulesOf(Object.fromEntries(ROUTE_IDS.map((id) => [id, [rule]])))
}

const at = (method: string, path: string): RouteDescriptor => {
  const found = descriptor(method, path)
  return found.route.thread === 'body' ? { ...found, ids: { ...found.ids, threadId: 't-1' } } : found
}
const ARCHIVING: RouteDescriptor = { ...at('PATCH', 'threads/t-1'), ownerOnly: true }
const bobs = (granted?: Right, more: object = {}): OwnerRecord => ({
  owner: 'corp:bob',
  deleted: false,
  ...(granted === undefined ? {} : { granted }),
  ...more,
})
const decided = (
  about: RouteDescriptor,
  record: OwnerRecord,
  rules = OPEN,
  principal: Principal = alice,
  facts: Partial<Facts> = {},
) => decide(about, principal, rules, { ...FACTS, ...facts, record })
const may = (...asked: Parameters<typeof decided>): boolean => decided(...asked).outcome === 'permitted'

const GRANTED = [undefined, 'read', 'write'] as const

/** The right that a request needs, and what it gets with no grant, one for reading and one for writing. */
interface Needed {
  readonly right: NeededRight
  readonly relations: readonly Relation[]
  readonly outcomes: readonly string[]
  /** Under `observe`: the reason that is only reported, null where enforcement would permit, or the outcome. */
  readonly observed: readonly (string | null)[]
}
const NEEDS_READ: Needed = {
  right: 'read',
  relations: ['foreign', 'shared', 'shared'],
  outcomes: ['refused', 'permitted', 'permitted'],
  observed: ['thread-foreign', null, null],
}
const NEEDS_WRITE: Needed = {
  right: 'write',
  relations: ['foreign', 'foreign', 'shared'],
  outcomes: ['refused', 'refused', 'permitted'],
  observed: ['thread-foreign', 'thread-foreign', null],
}
const NEEDS_OWNER: Needed = {
  right: 'owner',
  relations: ['foreign', 'foreign', 'foreign'],
  outcomes: ['refused', 'refused', 'refused'],
  observed: ['thread-foreign', 'thread-foreign', 'thread-foreign'],
}
const OF_THE_GATEWAY: Needed = { ...NEEDS_OWNER, observed: ['refused', 'refused', 'refused'] }

const NEEDED: readonly (readonly [about: RouteDescriptor, needed: Needed])[] = [
  [at('POST', 'agent/a/run'), NEEDS_WRITE],
  [at('POST', 'agent/a/connect'), NEEDS_READ],
  [at('POST', 'agent/a/suggest'), NEEDS_WRITE],
  [at('POST', 'agent/a/stop/t-1'), NEEDS_WRITE],
  [at('PATCH', 'threads/t-1'), NEEDS_WRITE],
  [ARCHIVING, NEEDS_OWNER],
  [at('DELETE', 'threads/t-1'), NEEDS_OWNER],
  [at('POST', 'threads/t-1/archive'), NEEDS_OWNER],
  [at('GET', 'threads/t-1/messages'), NEEDS_READ],
  [at('GET', 'threads/t-1/events'), NEEDS_READ],
  [at('GET', 'threads/t-1/state'), NEEDS_READ],
  [at('POST', 'annotate'), NEEDS_WRITE],
  [at('POST', 'graphs/threads'), NEEDS_WRITE],
  [at('GET', 'graphs/threads/t-1'), NEEDS_READ],
  [at('PATCH', 'graphs/threads/t-1'), NEEDS_WRITE],
  [at('DELETE', 'graphs/threads/t-1'), NEEDS_OWNER],
  [at('POST', 'graphs/threads/t-1/copy'), NEEDS_READ],
  [at('GET', 'graphs/threads/t-1/state'), NEEDS_READ],
  [at('GET', 'graphs/threads/t-1/state/x'), NEEDS_READ],
  [at('POST', 'graphs/threads/t-1/state/checkpoint'), NEEDS_READ],
  [at('GET', 'graphs/threads/t-1/history'), NEEDS_READ],
  [at('POST', 'graphs/threads/t-1/history'), NEEDS_READ],
  [at('POST', 'graphs/threads/t-1/state'), NEEDS_WRITE],
  [at('POST', 'graphs/threads/t-1/runs'), NEEDS_WRITE],
  [at('POST', 'graphs/threads/t-1/runs/stream'), NEEDS_WRITE],
  [at('POST', 'graphs/threads/t-1/runs/wait'), NEEDS_WRITE],
  [at('GET', 'graphs/threads/t-1/runs'), NEEDS_READ],
  [at('GET', 'graphs/threads/t-1/runs/x'), NEEDS_READ],
  [at('GET', 'graphs/threads/t-1/runs/x/join'), NEEDS_READ],
  [at('GET', 'graphs/threads/t-1/runs/x/stream'), NEEDS_READ],
  [at('POST', 'graphs/threads/t-1/runs/x/cancel'), NEEDS_WRITE],
  [at('DELETE', 'graphs/threads/t-1/runs/x'), NEEDS_OWNER],
  [at('GET', 'threadwarden/threads/t-1/grants'), OF_THE_GATEWAY],
  [at('POST', 'threadwarden/threads/t-1/grants'), OF_THE_GATEWAY],
  [at('DELETE', 'threadwarden/threads/t-1/grants'), OF_THE_GATEWAY],
]
const nameOf = ({ route, ownerOnly }: RouteDescriptor) =>
  `${route.method} ${route.path.join('/')}${ownerOnly === true ? ' with archived' : ''}`
const READ = at('GET', 'threads/t-1/messages')
const RUN = at('POST', 'agent/a/run')

void test('every route about a thread is in the table of rights', (t) => {
  const written = new Set(NEEDED.map(([{ route }]) => route))
  for (const route of ALL_ROUTES) t.equal(written.has(route), route.thread !== undefined, `${route.method} ${route.id}`)
  t.end()
})

for (const [about, needed] of NEEDED) {
  void test(`${nameOf(about)}: needs ${needed.right}`, (t) => {
    const outcomes = (rules: Rules) => GRANTED.map((granted) => decided(about, bobs(granted), rules).outcome)
    t.equal(neededRight(about), needed.right)
    t.same(outcomes(OPEN), needed.outcomes)
    t.same(outcomes(opening(['shared'])), needed.outcomes)
    t.same(
      GRANTED.map((granted) => relationOf(bobs(granted), alice, about, OPEN)),
      needed.relations,
    )
    t.match(decided(about, { owner: 'corp:alice', deleted: false }), { outcome: 'permitted' }, 'its owner may')
    t.match(decided(about, { owner: 'corp:alice', deleted: false, granted: 'read' }), { outcome: 'permitted' })
    t.match(decided(about, bobs()), { reason: 'thread-foreign', code: 'not-owner' })
    for (const granted of GRANTED) {
      const none = [
        may(about, bobs(granted), { ...OPEN, sharing: false }),
        may(about, bobs(granted, { deleted: true })),
        may(about, bobs(granted, { seen: true })),
        may(about, { owner: '', deleted: false, seen: true, ...(granted === undefined ? {} : { granted }) }),
        may(about, { owner: '', deleted: false, ...(granted === undefined ? {} : { granted }) }),
        may(about, bobs(granted), OPEN, ANONYMOUS),
        may(about, bobs(granted), OPEN, EVERYBODY),
        may(about, bobs(granted), opening(['own', 'unknown'])),
      ]
      t.same(
        none,
        Array(8).fill(false),
        `${String(granted)}: sharing off, deleted, seen, withheld, anonymous, everybody, own alone`,
      )
    }
    t.end()
  })
}

void test('a route that names no right needs the owner', (t) => {
  const { right, ...silent } = READ.route
  t.equal(right, 'read')
  const about = { ...READ, route: silent }
  t.equal(neededRight(about), 'owner')
  t.same([may(about, bobs('write')), may(about, { owner: 'corp:alice', deleted: false })], [false, true])
  t.end()
})

void test('a refusal of what was granted for less tells no more than one of any foreign thread', (t) => {
  for (const [about, needed] of NEEDED) {
    const foreign = decided(about, bobs())
    for (const [record, rules] of [
      [bobs('write'), { ...OPEN, sharing: false }],
      [bobs('write'), opening(['own'])],
      [bobs('write', { deleted: true }), OPEN],
    ] as const) {
      t.strictSame(decided(about, record, rules), foreign, nameOf(about))
    }
    if (needed.right !== 'read') t.strictSame(decided(about, bobs('read')), foreign, nameOf(about))
  }
  t.end()
})

void test('a deleted thread is unknown to its owner and foreign to all others, whatever had been granted', (t) => {
  const gone = { owner: 'corp:alice', deleted: true, granted: 'write' } as const
  t.equal(relationOf(gone, alice, RUN, OPEN), 'unknown')
  t.equal(relationOf(gone, olga, RUN, OPEN), 'foreign')
  t.match(decided(READ, gone, opening(['own', 'shared', 'unknown', 'foreign']), olga), { reason: 'thread-foreign' })
  t.end()
})

void test('a run by a guest registers for the owner, and begins nothing', (t) => {
  const run = decided(RUN, bobs('write'))
  t.match(run, { outcome: 'permitted', owner: 'corp:bob', claim: true, begins: false, answerEmpty: false, observed: null })
  t.match(run, { principal: { id: 'corp:alice' } })
  for (const path of ['agent/a/suggest', 'agent/a/connect'])
    t.match(
      decided(at('POST', path), bobs('write')),
      { owner: 'corp:bob', claim: false, begins: false, answerEmpty: false },
      path,
    )
  t.match(decided(at('PATCH', 'threads/t-1'), bobs('write')), { owner: 'corp:bob', claim: false })
  t.end()
})

const DENY = { effect: 'deny' } as const
const ruled = (...rules: readonly Partial<Rule>[]) => rulesOf({ 'threads/messages': rules })

void test('a rule that denies shared threads speaks of those alone; one that denies foreign ones does not speak of them', (t) => {
  const allow: Partial<Rule> = { threads: ['own', 'shared', 'foreign'] }
  const shared = ruled(allow, { ...DENY, name: 'no-shared', threads: ['shared'] })
  t.match(decided(READ, bobs('read'), shared), { reason: 'denied-by-rule', code: 'not-owner', rule: { name: 'no-shared' } })
  t.ok(may(READ, bobs(), shared), 'what was not granted is foreign')
  t.ok(may(READ, { owner: 'corp:alice', deleted: false, granted: 'read' }, shared), 'one’s own is no shared one')
  const foreign = ruled(allow, { ...DENY, threads: ['foreign'] })
  t.ok(may(READ, bobs('read'), foreign))
  t.match(decided(READ, bobs(), foreign), { reason: 'denied-by-rule' })
  const off = { ...foreign, sharing: false }
  t.match(decided(READ, bobs('read'), off), { reason: 'denied-by-rule' }, 'where grants do not count it is foreign')
  const all = ruled(allow, { ...DENY, threads: null })
  t.match(decide(READ, alice, all, FACTS), { reason: 'denied-by-rule' }, 'without asking whose thread it is')
  t.end()
})

void test('whoever may have everybody’s threads may have those that were granted to them: a grant takes nothing away', (t) => {
  const desk = ruled({ who: ['operator'], threads: ['foreign'] })
  for (const record of [bobs(), bobs('read'), bobs('write')]) t.ok(may(READ, record, desk, olga), JSON.stringify(record))
  t.notOk(may(READ, bobs('read'), desk), 'for others it opens nothing')
  for (const gone of [{ deleted: true }, { seen: true }, { owner: '' }])
    t.notOk(may(READ, bobs('read', gone), desk, olga), JSON.stringify(gone))
  t.notOk(may(READ, { owner: 'corp:olga', deleted: false, granted: 'read' }, desk, olga), 'nor their own')
  t.end()
})

void test('the first rule that opens it says what passes, also of a shared thread', (t) => {
  const rules = ruled(
    { name: 'own', threads: ['own'] },
    { name: 'guests', threads: ['shared'] },
    { name: 'all', threads: ['foreign'] },
  )
  t.match(decided(READ, bobs('read'), rules), { rule: { name: 'guests' } })
  t.match(decided(READ, bobs(), rules), { rule: { name: 'all' } })
  t.match(decided(READ, { owner: 'corp:alice', deleted: false }, rules), { rule: { name: 'own' } })
  t.end()
})

void test('a list holds what may be read: one switch for both', (t) => {
  const [hidden, closed] = [{ ...OPEN, sharing: false }, opening(['own'])]
  for (const rules of [OPEN, hidden, closed]) {
    for (const record of [bobs(), bobs('read'), bobs('write'), bobs('read', { deleted: true }), bobs('read', { seen: true })]) {
      for (const principal of [alice, olga, ANONYMOUS, EVERYBODY]) {
        t.equal(listingFor(principal, rules, FACTS)('t-1', record), may(READ, record, rules, principal))
      }
    }
  }
  t.ok(listingFor(alice, OPEN, FACTS)('t-1', bobs('read')))
  t.notOk(listingFor(alice, hidden, FACTS)('t-1', bobs('write')))
  t.notOk(listingFor(alice, closed, FACTS)('t-1', bobs('write')))
  t.end()
})

void test('a list decides each thread by its own record, whatever was decided before it', (t) => {
  const records: readonly OwnerRecord[] = [
    null,
    ...['corp:alice', 'corp:bob', ''].flatMap((owner) =>
      [false, true].flatMap((deleted) =>
        [{}, { seen: true as const }, { provisional: true as const }].flatMap((state) =>
          [{}, { granted: 'read' as const }, { granted: 'write' as const }].map((grant) => ({
            owner,
            deleted,
            ...state,
            ...grant,
          })),
        ),
      ),
    ),
  ]
  // Each of these opens threads by something else of their records.
  for (const rules of [OPEN, opening(['shared']), opening(['own', 'shared', 'foreign'])]) {
    const alone = new Map(records.map((record) => [record, listingFor(alice, rules, FACTS)('t-1', record)]))
    const isListed = listingFor(alice, rules, FACTS)
    for (const one of records) {
      for (const other of records) {
        isListed('t-1', one)
        if (isListed('t-2', other) !== alone.get(other)) t.fail(JSON.stringify({ one, other }))
      }
    }
    t.equal(new Set(alone.values()).size, 2, 'some are listed, some are not')
  }
  t.end()
})

void test('a list has no grant that only observe mode would let through', (t) => {
  const observing: Facts = { ...FACTS, enforcement: 'observe' }
  t.ok(listingFor(alice, OPEN, observing)('t-1', bobs('read')))
  t.notOk(listingFor(alice, { ...OPEN, sharing: false }, observing)('t-1', bobs('read')))
  t.end()
})

void test('observe: a grant is no observation, what it is not enough for is one; the gateway’s own is enforced', (t) => {
  const observing: Partial<Facts> = { enforcement: 'observe' }
  for (const [about, needed] of NEEDED) {
    const said = GRANTED.map((granted) => {
      const decision = decided(about, bobs(granted), OPEN, alice, observing)
      if (decision.outcome === 'permitted') t.match(decision, { owner: 'corp:bob', claim: false }, nameOf(about))
      return decision.outcome === 'permitted' ? decision.observed : decision.outcome
    })
    t.same(said, needed.observed, nameOf(about))
  }
  t.end()
})

void test('grants are not for anonymous callers of mode optional, whatever a policy says: each would give away all their threads', (t) => {
  const own = { owner: 'anonymous', deleted: false }
  for (const method of ['GET', 'POST', 'DELETE']) {
    const about = at(method, 'threadwarden/threads/t-1/grants')
    t.match(decided(about, own, OPEN, ANONYMOUS), { reason: 'anonymous-not-allowed', code: 'not-allowed' })
    t.ok(may(about, own, OPEN, EVERYBODY), 'in mode off there is nobody else')
  }
  t.ok(may(READ, own, OPEN, ANONYMOUS))
  t.end()
})

void test('a thread that nobody owns has nothing that could be granted', (t) => {
  const unknown = opening(['own', 'shared', 'unknown', 'foreign'])
  for (const method of ['GET', 'POST', 'DELETE']) {
    t.match(decided(at(method, 'threadwarden/threads/t-1/grants'), null, unknown), {
      reason: 'thread-unknown',
      code: 'not-owner',
    })
  }
  t.end()
})
