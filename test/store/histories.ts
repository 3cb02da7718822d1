/** Generated histories: what many requests and operators do to a few threads, one step after the other. */
import fc from 'fast-check'
import type { Reader } from '../../src/core/decide/sharing.ts'
import type { RunOutcome } from '../../src/store/port/claims.ts'
import type { ThreadKey } from '../../src/store/port/thread.ts'
import { steps, whatCounts } from './contract/under-test.ts'
import type { AtUpstream } from '../../src/store/port/claims.ts'
import type { Modelled } from './model.ts'

/** A step of a history. */
export interface Step {
  readonly name: string
  /** Does it; the answer is the same of every store. */
  readonly take: (store: Modelled, now: number) => Promise<unknown>
  /** Milliseconds that pass before it. */
  readonly after: number
}

/** The people and places of a history; each history has its own, so that none finds what another has left. */
export interface World {
  readonly users: readonly string[]
  readonly groups: readonly string[]
  readonly keys: readonly ThreadKey[]
}

/** A world. @param name its own */
export function worldOf(name: string): World {
  return {
    users: ['a', 'b', 'B'].map((one) => `${name}:${one}`),
    groups: [`${name}:a`, `${name}:g`],
    keys: [
      { scope: '', threadId: `${name}-t` },
      { scope: '', threadId: `${name}-T` },
      { scope: '', threadId: `${name}-t ` },
      { scope: name, threadId: `${name}-t` },
    ],
  }
}

/** A history in a world. */
export function historyOf({ users, groups, keys }: World, length: number): fc.Arbitrary<readonly Step[]> {
  const key = fc.constantFrom(...keys)
  const user = fc.constantFrom(...users)
  const agentId = fc.constantFrom('one', 'two', '')
  const life = fc.nat(3)
  const right = fc.constantFrom('read' as const, 'write' as const)
  const owner = fc.option(user, { nil: null })
  const grantee = fc.oneof(
    fc.record({ kind: fc.constant('user' as const), id: user }),
    fc.record({ kind: fc.constant('group' as const), id: fc.constantFrom(...groups) }),
  )
  const imported = fc.record({
    key,
    owner: user,
    agentId,
    name: fc.constantFrom(null, 'n'),
    archived: fc.boolean(),
    age: fc.nat(100_000),
  })
  const scope = fc.constantFrom(undefined, ...keys.map((one) => one.scope))
  const expected = fc.constantFrom(undefined, null, '', ...users)
  const outcome = fc.constantFrom<RunOutcome>('confirmed', 'confirmed', 'stays', 'not-started')

  const takes: fc.Arbitrary<Omit<Step, 'after'>>[] = [
    named('claim', fc.tuple(key, user, agentId), (store, now, [k, userId, agent]) =>
      store.claim(k, { userId, agentId: agent, guest: false, now }),
    ),
    named('guest', fc.tuple(key, user), (store, now, [k, userId]) =>
      store.claim(k, { userId, agentId: 'guest', guest: true, now }),
    ),
    named('note a write', key, (store, now, k) => store.noteWrite(k, now)),
    named('settle', fc.tuple(key, user, life, outcome), (store, _now, args) => store.settle(...args)),
    named('bury', fc.tuple(key, user, fc.boolean()), (store, now, [k, userId, gone]) =>
      store.bury(k, userId, now, atUpstream(gone)),
    ),
    named(
      'begin a deletion',
      fc.tuple(key, user),
      async (store, _now, [k, userId]) => (await store.beginDeletion(k, userId)) !== null,
    ),
    named('delete', fc.tuple(key, user, fc.boolean(), fc.option(user), fc.boolean()), async (store, now, args) => {
      const [k, userId, gone, runner, writes] = args
      const deletion = await store.beginDeletion(k, userId)
      const run = runner === null ? null : await store.claim(k, { userId: runner, agentId: 'one', guest: false, now })
      if (writes) await store.noteWrite(k, now)
      return [run, deletion !== null && (await store.endDeletion(k, userId, deletion, now, atUpstream(gone)))]
    }),
    named('rename', fc.tuple(key, user, fc.constantFrom(null, 'x', 'y')), (store, _now, args) => store.rename(...args)),
    named('archive', fc.tuple(key, user, fc.record({ archived: fc.boolean() })), (store, _now, args) => store.archive(...args)),
    named('grant', fc.tuple(key, owner, grantee, right, user), (store, now, [k, by, to, access, grantedBy]) =>
      store.grant(k, by, { ...to, right: access, grantedBy, grantedAt: now }),
    ),
    named('ungrant', fc.tuple(key, owner, grantee), (store, _now, args) => store.ungrant(...args)),
    named('observe', fc.tuple(key, user, agentId, fc.boolean()), (store, now, [k, userId, agent, ran]) =>
      store.observe(k, userId, agent, ran ? 'run' : 'other', now),
    ),
    named('assign', fc.tuple(key, user, expected), (store, now, [k, to, was]) => store.assign(k, to, now, was)),
    named('withhold', key, (store, now, k) => store.withhold(k, now)),
    named('transfer', fc.tuple(user, user, scope), async (store, _now, [from, to, within]) => {
      await steps(() => store.transfer(from, to, 2, within))
    }),
    named('erase', user, async (store, now, userId) => {
      await steps(() => store.erase(userId, now, 2))
    }),
    named(
      'import',
      fc.tuple(fc.array(imported, { minLength: 1, maxLength: 4 }), fc.boolean(), fc.boolean()),
      (store, now, [rows, dryRun, settleConflicts]) =>
        store.import(
          rows.map(({ key: k, age, ...values }) => ({ ...k, ...values, createdAt: now - age, lastUsedAt: now - age })),
          { dryRun, settleConflicts },
        ),
    ),
    named(
      'prune',
      fc.tuple(fc.constantFrom('deletedBefore', 'unusedSince'), fc.nat(200_000), scope),
      async (store, now, [which, age, within]) => {
        const rule = { [which]: now - age, ...(within === undefined ? {} : { scope: within }) }
        const count = await store.prunable(rule)
        const done = await steps(() => store.prune(rule, 2))
        return [count, done.reduce((sum, one) => sum + one, 0)]
      },
    ),
  ]
  const step = fc.tuple(fc.oneof(...takes), fc.nat(40_000)).map(([one, after]): Step => ({ ...one, after }))
  return fc.array(step, { minLength: 1, maxLength: length })
}

/**
 * All that somebody could ask of a world.
 * @param alone true to ask what is known of each thread alone: after a change by another connection that may be a second old
 */
export async function everythingIn(store: Modelled, { users, groups, keys }: World, alone: boolean): Promise<unknown> {
  const all: unknown[] = []
  const readers: Reader[] = users.flatMap((userId) => [
    { userId, groups: [] },
    { userId, groups },
  ])
  const window = { agentId: null, includeArchived: true, after: null, limit: 10 }
  for (const key of keys) {
    all.push(await store.thread(key), await store.grants(key, null))
    for (const reader of readers) {
      if (alone) all.push(whatCounts(await store.accessTo(key, reader), reader))
      else all.push([...(await store.accessToSeveral(key.scope, [key.threadId], reader))])
    }
  }
  for (const scope of new Set(keys.map((key) => key.scope)))
    for (const reader of readers) {
      all.push(await store.listed(scope, reader, window))
      all.push([...((await store.accessOfReader(scope, reader, 1000)) ?? [])].sort(([one], [other]) => (one < other ? -1 : 1)))
      all.push(await store.listed(scope, reader, { ...window, includeArchived: false, agentId: 'one', limit: 1 }))
    }
  for (const userId of users) all.push(await store.userData(userId), await store.threads({ owner: userId }, null, 10))
  for (const id of groups) all.push(await store.grantedTo({ kind: 'group', id }, null, 10))
  all.push(await store.observed(null, 10))
  return all
}

function named<T>(
  name: string,
  args: fc.Arbitrary<T>,
  take: (store: Modelled, now: number, args: T) => Promise<unknown>,
): fc.Arbitrary<Omit<Step, 'after'>> {
  return args.map((values) => {
    const text = `${name} ${fc.stringify(values)}`
    return {
      name: text,
      take: (store: Modelled, now: number) => take(store, now, values),
      // What a failing history is printed as.
      [fc.toStringMethod]: () => text,
    }
  })
}

function atUpstream(gone: boolean): AtUpstream {
  return gone ? 'deleted' : 'unknown'
}
