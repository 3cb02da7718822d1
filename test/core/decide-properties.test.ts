/**
 * What holds for every policy, caller and thread: denying more never opens anything, nor does allowing less, and no order of
 * the rules makes a difference to who may do what. Another seed: THREADWARDEN_FUZZ_SEED.
 */
import fc from 'fast-check'
import { test, type Test } from 'tap'
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import { verdictOn, type CallerConditions, type ClaimTest, type Rule } from '../../src/core/decide/rules.ts'
import { decide, listingFor, listsForeign, type Facts, type OwnerRecord } from '../../src/core/decide/decide.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../../src/core/decide/principal.ts'
import type { Right } from '../../src/core/decide/sharing.ts'
import { user } from '../../testing/support/callers.ts'
import { descriptor } from '../../testing/support/policies.ts'
import { seedOfEnvironment } from '../../testing/fuzz/run.ts'
import { rule, rulesOf } from '../../testing/support/rules-of.ts'
import { runsOf } from '../../testing/support/sample.ts'

const RUNS = runsOf(2000, 4)

const maybe = <T>(one: fc.Arbitrary<T>, otherwise: T): fc.Arbitrary<T> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(otherwise) }, { weight: 1, arbitrary: one })
const some = <T>(...of: readonly T[]): fc.Arbitrary<T[]> => fc.subarray([...of], { minLength: 1 })

const claim: fc.Arbitrary<ClaimTest> = fc.constantFrom<ClaimTest>(
  { at: '/x', is: 'equal', to: 1 },
  { at: '/x', is: 'at-least', bound: 2 },
  { at: '/x', is: 'in', list: ['a'] },
  { at: '/x', is: 'containing', item: 'a' },
  { at: '/x', is: 'present', wanted: true },
)
const conditions: fc.Arbitrary<CallerConditions> = fc.record(
  {
    issuers: some('corp', 'partner'),
    roles: some('lead', 'operator'),
    permissions: fc.record({ any: some('p', 'q') }),
    claims: fc.array(claim, { minLength: 1, maxLength: 2 }),
  },
  { requiredKeys: [] },
)
const RELATIONS = ['own', 'shared', 'unknown', 'foreign'] as const
const anyRule = (effect: Rule['effect']): fc.Arbitrary<Rule> =>
  fc
    .record({
      effect: fc.constant(effect),
      who: some('anonymous' as const, 'signed-in' as const, 'operator' as const),
      when: maybe(conditions, {}),
      unless: maybe<CallerConditions | null>(conditions, null),
      agents: maybe<ReadonlySet<string> | null>(
        some('a', 'b').map((ids) => new Set(ids)),
        null,
      ),
      methods: maybe<Rule['methods']>(some('GET' as const, 'POST' as const), null),
      threads: maybe<Rule['threads']>(some(...RELATIONS), effect === 'deny' ? null : ['own', 'shared', 'unknown']),
      onlyUserScoped: maybe(fc.constant(true), false),
      hides: maybe(fc.constant(true), false),
    })
    .map((parts) => rule(parts))

/** Rules in an order of their own, with names of their own. */
const anyRules: fc.Arbitrary<readonly Rule[]> = fc
  .array(fc.oneof({ weight: 3, arbitrary: anyRule('allow') }, { weight: 1, arbitrary: anyRule('deny') }), { maxLength: 6 })
  .map((rules) => rules.map((one, at) => ({ ...one, name: `rule-${at}` })))

const caller: fc.Arbitrary<Principal> = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom<Principal>(ANONYMOUS, EVERYBODY) },
  {
    weight: 5,
    arbitrary: fc
      .record({
        issuer: fc.constantFrom('corp', 'partner'),
        roles: fc.subarray(['lead', 'operator']),
        permissions: fc.subarray(['p', 'q']),
        claims: fc.constantFrom<unknown>({}, { x: 1 }, { x: 2 }, { x: 'a' }, { x: ['a'] }, { x: null }),
      })
      .map((more) => user('alice', more)),
  },
)

const DESCRIPTORS: readonly RouteDescriptor[] = [
  descriptor('GET', 'info'),
  descriptor('GET', 'threads'),
  descriptor('GET', 'threads/t-1/messages'),
  descriptor('PATCH', 'threads/t-1'),
  { ...descriptor('PATCH', 'threads/t-1'), ownerOnly: true },
  descriptor('GET', 'threadwarden/threads/t-1/grants'),
  ...['run', 'connect', 'suggest'].flatMap((what) => ['a', 'b'].map((agent) => descriptor('POST', `agent/${agent}/${what}`))),
]

/** A request, with all that is known of it, and whether grants count. */
interface Asked {
  readonly about: RouteDescriptor
  readonly principal: Principal
  readonly facts: Facts & { readonly record: OwnerRecord }
  readonly sharing: boolean
}

const sharingMostly = fc.constantFrom(true, true, true, false)

const asked: fc.Arbitrary<Asked> = fc
  .record({ about: fc.constantFrom(...DESCRIPTORS), principal: caller })
  .chain(({ about, principal }) =>
    fc
      .record({
        userScoped: fc.boolean(),
        unknownThread: fc.constantFrom('claim' as const, 'verify' as const, 'deny' as const),
        enforcement: fc.constantFrom('enforce' as const, 'enforce' as const, 'observe' as const),
        upstreamHistory: fc.constantFrom('none' as const, 'some' as const),
        record: fc.constantFrom<OwnerRecord>(
          null,
          { owner: principal.id, deleted: false },
          { owner: principal.id, deleted: true },
          { owner: 'corp:bob', deleted: false },
          { owner: 'corp:bob', deleted: true },
          { owner: 'corp:bob', deleted: false, granted: 'read' },
          { owner: 'corp:bob', deleted: false, granted: 'write' },
          { owner: principal.id, deleted: false, provisional: true },
          { owner: 'corp:bob', deleted: false, provisional: true },
          { owner: 'corp:bob', deleted: false, provisional: true, granted: 'read' },
          { owner: 'corp:bob', deleted: false, provisional: true, granted: 'write' },
          { owner: 'corp:bob', deleted: true, granted: 'write' },
          { owner: '', deleted: false, seen: true },
          { owner: '', deleted: false },
        ),
      })
      .chain((facts) => sharingMostly.map((sharing) => ({ about, principal, facts, sharing }))),
  )

function decided({ about, principal, facts, sharing }: Asked, rules: readonly Rule[]) {
  const decision = decide(about, principal, { ...rulesOf({ [about.route.id]: rules }), sharing }, facts)
  if (decision.outcome === 'needs') throw new Error('everything is known')
  return decision
}

const permits = (request: Asked, rules: readonly Rule[]): boolean => decided(request, rules).outcome === 'permitted'
const verdictOf = (one: Rule, { about, principal, facts }: Asked) =>
  verdictOn(one, about, principal, rulesOf({}).operators, facts)
const inserted = (rules: readonly Rule[], at: number, one: Rule): readonly Rule[] =>
  rules.toSpliced(at % (rules.length + 1), 0, one)

/** Checks a property, and that the cases which it speaks of are not rare. */
function holds<T extends [unknown, ...unknown[]]>(
  t: Test,
  arbitraries: { [K in keyof T]: fc.Arbitrary<T[K]> },
  property: (...given: T) => boolean | null,
): void {
  let spoken = 0
  const checked = (...given: T): boolean => {
    const held = property(...given)
    if (held !== null) spoken += 1
    return held !== false
  }
  const result = fc.check(fc.property<T>(...(arbitraries as never), checked), { numRuns: RUNS, seed: seedOfEnvironment() })
  t.notOk(result.failed, `THREADWARDEN_FUZZ_SEED=${result.seed}\n${fc.stringify(result.counterexample)}`)
  if (!result.failed) t.ok(spoken > RUNS / 50, `it speaks of ${spoken} cases`)
  t.end()
}

void test('one more rule that denies opens nothing, wherever it stands', (t) => {
  holds(t, [asked, anyRules, anyRule('deny'), fc.nat(6)], (request, rules, denying, at) =>
    permits(request, rules) ? null : !permits(request, inserted(rules, at, denying)),
  )
})

void test('a rule less that allows opens nothing, but for one that could not be evaluated', (t) => {
  holds(t, [asked, anyRules, fc.nat(5)], (request, rules, at) => {
    const gone = rules[at]
    if (gone?.effect !== 'allow' || verdictOf(gone, request) === 'failed' || permits(request, rules)) return null
    return !permits(request, rules.toSpliced(at, 1))
  })
})

void test('a rule that denies everybody closes everything, whatever else the policy says', (t) => {
  const everybody = rule({ name: 'closed', effect: 'deny', who: ['anonymous', 'signed-in'], threads: null })
  holds(t, [asked, anyRules, fc.nat(6)], (request, rules, at) => !permits(request, inserted(rules, at, everybody)))
})

void test('a rule that denies every thread closes every one, unless ownership is only observed', (t) => {
  const everyThread = rule({ name: 'closed', effect: 'deny', who: ['anonymous', 'signed-in'], threads: RELATIONS })
  holds(t, [asked, anyRules, fc.nat(6)], (request, rules, at) => {
    const decision = decided(request, inserted(rules, at, everyThread))
    if (request.about.route.thread === undefined) {
      return JSON.stringify(decision) === JSON.stringify(decided(request, rules))
    }
    return decision.outcome === 'refused' || (request.facts.enforcement === 'observe' && decision.observed !== null)
  })
})

void test('a rule that fails closes its route, whatever else the policy says', (t) => {
  const claims: ClaimTest[] = [{ at: '/x', is: 'at-least', bound: 2 }]
  const failing = anyRule('deny').map((one) => ({ ...one, who: ['signed-in'] as const, when: { claims } }))
  const wrongType = asked.map((request) => ({ ...request, principal: user('alice', { claims: { x: 'a' } }) }))
  holds(t, [wrongType, anyRules, failing, fc.nat(6)], (request, rules, one, at) => {
    const anywhere = { ...one, unless: null, agents: null, methods: null, onlyUserScoped: false }
    return !permits(request, inserted(rules, at, anywhere))
  })
})

void test('a permit rests on the rule that it names: it allows, and would permit alone', (t) => {
  holds(t, [asked, anyRules], (request, rules) => {
    const decision = decided(request, rules)
    if (decision.outcome === 'refused') return null
    if (decision.rule.effect !== 'allow') return false
    const alone = decided(request, [decision.rule])
    return alone.outcome === 'permitted' && alone.rule.name === decision.rule.name
  })
})

void test('where no rule opens threads of others, nobody gets one', (t) => {
  holds(t, [asked, anyRules], (one, rules) => {
    const request: Asked = { ...one, facts: { ...one.facts, enforcement: 'enforce' } }
    const { record } = request.facts
    if (request.about.route.thread === undefined || record === null || record.owner === request.principal.id) return null
    const ownOnly = rules.map((rule) => (rule.effect === 'deny' ? rule : { ...rule, threads: ['own', 'unknown'] as const }))
    return !permits(request, ownOnly)
  })
})

void test('the order of the rules that deny means nothing, and that of all of them nothing to who may', (t) => {
  const shuffled = anyRules.chain((rules) =>
    fc.tuple(fc.constant(rules), fc.shuffledSubarray([...rules], { minLength: rules.length })),
  )
  holds(t, [asked, shuffled], (request, [rules, others]) => {
    if (rules.length < 2) return null
    const allowing = rules.filter(({ effect }) => effect === 'allow')
    const denying = others.filter(({ effect }) => effect === 'deny')
    const [first, second] = [decided(request, rules), decided(request, [...allowing, ...denying])]
    if (first.outcome === 'permitted') {
      return second.outcome === 'permitted' && second.rule.name === first.rule.name && permits(request, others)
    }
    return second.outcome === 'refused' && second.reason === first.reason && !permits(request, others)
  })
})

void test('a policy that allows nobody permits nothing', (t) => {
  holds(t, [asked, anyRules], (request, rules) => {
    const denying = rules.filter(({ effect }) => effect === 'deny')
    return !permits(request, denying) && !permits(request, [...denying, rule({ who: [], threads: RELATIONS })])
  })
})

const withGrant = (request: Asked, granted?: Right): Asked | null => {
  const { record } = request.facts
  if (record === null) return null
  const { owner, deleted, seen, provisional } = record
  const row = { owner, deleted, ...(seen === undefined ? {} : { seen }), ...(provisional === undefined ? {} : { provisional }) }
  return { ...request, facts: { ...request.facts, record: granted === undefined ? row : { ...row, granted } } }
}

void test('a grant takes nothing away, but by a rule that denies shared threads, and the wider one gives no less', (t) => {
  holds(t, [asked, anyRules], (request, rules) => {
    const [none, read, write] = [withGrant(request), withGrant(request, 'read'), withGrant(request, 'write')]
    if (none === null || read === null || write === null) return null
    if (rules.some(({ effect, threads }) => effect === 'deny' && threads?.includes('shared') === true)) return null
    const may = [none, read, write].map((one) => permits(one, rules))
    return (!may[0] || may[1] === true) && (!may[1] || may[2] === true)
  })
})

/** Whatever else is said of a request, a grant changes nothing of it. */
const IDLE: Readonly<Record<string, (request: Asked) => Asked>> = {
  'where the policy does not let grants count': (request) => ({ ...request, sharing: false }),
  'for a caller who has not signed in': (request) => ({ ...request, principal: ANONYMOUS }),
  'where all callers are one': (request) => ({ ...request, principal: EVERYBODY }),
  'on a deleted thread': (request) => about(request, { deleted: true }),
  'on a thread that was only seen': (request) => about(request, { seen: true }),
  'on a thread that has no owner': (request) => about(request, { owner: '' }),
  'on a list of grants': (request) => ({ ...request, about: descriptor('GET', 'threadwarden/threads/t-1/grants') }),
  'on what only an owner may change': (request) => ({
    ...request,
    about: { ...descriptor('PATCH', 'threads/t-1'), ownerOnly: true },
  }),
  'that lets read, on a new name': (request) =>
    about({ ...request, about: descriptor('PATCH', 'threads/t-1') }, { granted: 'read' }),
  'that lets read, on a run': (request) => about({ ...request, about: descriptor('POST', 'agent/a/run') }, { granted: 'read' }),
}

const about = (request: Asked, more: Partial<NonNullable<OwnerRecord>>): Asked => {
  const { record } = request.facts
  return record === null ? request : { ...request, facts: { ...request.facts, record: { ...record, ...more } } }
}

for (const [where, spoiled] of Object.entries(IDLE)) {
  void test(`nothing comes of a grant ${where}`, (t) => {
    holds(t, [asked, anyRules], (one, rules) => {
      const request = spoiled(one)
      const none = withGrant(request)
      if (none === null || request.facts.record?.granted === undefined) return null
      return JSON.stringify(decided(request, rules)) === JSON.stringify(decided(none, rules))
    })
  })
}

void test('a list holds a thread exactly where its messages may be read, by whatever rules and grants', (t) => {
  const messages = descriptor('GET', 'threads/t-1/messages')
  holds(t, [asked, anyRules], (request, rules) => {
    const { principal, facts, sharing } = request
    if (facts.record?.granted === undefined) return null
    const reading = { ...request, about: messages, facts: { ...facts, enforcement: 'enforce' as const } }
    const listed = listingFor(principal, { ...rulesOf({ 'threads/messages': rules }), sharing }, facts)('t-1', facts.record)
    return listed === permits(reading, rules)
  })
})

void test('whoever lists nothing foreign lists only what a record names them in', (t) => {
  holds(t, [asked, anyRules], ({ principal, facts, sharing }, rules) => {
    const all = { ...rulesOf({ 'threads/messages': rules }), sharing }
    const isListed = listingFor(principal, all, facts)
    if (facts.record === null || listsForeign(isListed)) return null
    if (facts.record.owner === principal.id || facts.record.granted !== undefined) return null
    return !isListed('t-1', facts.record)
  })
})
