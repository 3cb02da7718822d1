/** The revocations in force: what another process revokes comes in by itself, and a failing store takes none back. */
import { join } from 'node:path'
import { test, type Test } from 'tap'
import type { Credential, Revocation } from '../../src/core/decide/credential.ts'
import type { RevocationStore } from '../../src/store/port/revocations.ts'
import { StoreUnavailable } from '../../src/store/port/state.ts'
import { makeRevocationList, type RevocationListOptions } from '../../src/store/revocations.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'

type Source = Pick<RevocationStore, 'revocations' | 'revocationsVersion'>

const NONE: Credential = { tokenId: undefined, issuedAt: undefined, expiresAt: undefined }
const token = (tokenId: string): Revocation => ({ kind: 'token', tokenId, revokedAt: 1 })

/** A list that is kept up to date as fast as it goes. */
async function listOn(t: Test, store: Source, options: RevocationListOptions = {}) {
  const list = await makeRevocationList(store, { interval: 1, ...options })
  t.teardown(() => list.stop())
  return list
}

/** A store whose answers the test chooses. */
function makeSource() {
  const state = { version: 1, all: [] as readonly Revocation[], failing: false, asked: 0 }
  const answer = async <T>(value: () => T): Promise<T> => {
    state.asked += 1
    if (state.failing) throw new StoreUnavailable('the disk is gone')
    return value()
  }
  return {
    state,
    source: { revocations: () => answer(() => state.all), revocationsVersion: () => answer(() => state.version) },
    set: (all: readonly Revocation[]): void => {
      state.all = all
      state.version += 1
    },
  }
}

void test('a list cannot start without its store', async (t) => {
  const { state, source } = makeSource()
  state.failing = true
  await t.rejects(makeRevocationList(source), StoreUnavailable)
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.equal(state.asked, 1, 'and does not go on by itself')
})

void test('every change is told once, and the list is read only when the version is another', async (t) => {
  const { state, source, set } = makeSource()
  const told: (readonly Revocation[])[] = []
  const list = await listOn(t, source, { onChange: (all) => told.push(all) })
  const asked = state.asked
  await until(() => state.asked > asked + 3)
  t.same(told, [], 'the first list is no change')
  state.all = [token('unseen')]
  const before = state.asked
  await until(() => state.asked > before + 3)
  t.same(list.current(), [], 'the version is what counts')
  set([token('a')])
  await until(() => told.length === 1)
  t.same(told, [[token('a')]])
  t.equal(list.isRevoked('x', { ...NONE, tokenId: 'a' }), true)
  set([])
  await until(() => told.length === 2)
  t.equal(list.isRevoked('x', { ...NONE, tokenId: 'a' }), false)
})

void test('a store that fails leaves the last known in force, says so once, and is looked at again', async (t) => {
  const { state, source, set } = makeSource()
  state.all = [token('a')]
  const failures: unknown[] = []
  const list = await listOn(t, source, { onFailure: (error) => failures.push(error) })
  for (const round of [1, 2]) {
    state.failing = true
    const asked = state.asked
    await until(() => state.asked > asked + 3)
    t.equal(failures.length, round)
    t.equal(list.isRevoked('x', { ...NONE, tokenId: 'a' }), true)
    await t.rejects(list.reload(), StoreUnavailable)
    state.failing = false
    set([token('a'), token(`b-${round}`)])
    await until(() => list.isRevoked('x', { ...NONE, tokenId: `b-${round}` }))
  }
  t.match(failures, [{ name: 'StoreUnavailable' }, { name: 'StoreUnavailable' }])
})

void test('reload brings in what was revoked before it was called, without waiting for the next look', async (t) => {
  const { source, set } = makeSource()
  const told: unknown[] = []
  const list = await listOn(t, source, { interval: 1e8, onChange: (all) => told.push(all) })
  set([token('a')])
  t.equal(list.isRevoked('x', { ...NONE, tokenId: 'a' }), false)
  await list.reload()
  t.equal(list.isRevoked('x', { ...NONE, tokenId: 'a' }), true)
  t.equal(told.length, 1)
  await list.reload()
  t.equal(told.length, 1, 'and tells nothing if nothing changed')
})

void test('an answer that comes late replaces no newer one', async (t) => {
  const { state, source, set } = makeSource()
  const first = Promise.withResolvers<undefined>()
  let slow = false
  const list = await listOn(
    t,
    {
      ...source,
      async revocations() {
        const all = state.all
        if (slow) {
          slow = false
          await first.promise
        }
        return all
      },
    },
    { interval: 1e8 },
  )
  set([token('old')])
  slow = true
  const one = list.reload()
  await until(() => !slow)
  set([token('new')])
  const two = list.reload()
  first.resolve(undefined)
  await Promise.all([one, two])
  t.same(list.current(), [token('new')])
})

void test('a list that was stopped asks nothing more and tells nothing more', async (t) => {
  const { state, source, set } = makeSource()
  const told: unknown[] = []
  const list = await listOn(t, source, { onChange: (all) => told.push(all), onFailure: (error) => told.push(error) })
  list.stop()
  set([token('a')])
  await new Promise((resolve) => setTimeout(resolve, 20))
  const { asked } = state
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.equal(state.asked, asked)
  t.same(told, [])
})

void test('a list that is stopped in the middle of a look ends with it', async (t) => {
  const { state, source, set } = makeSource()
  const told: unknown[] = []
  const gate = Promise.withResolvers<undefined>()
  let held = false
  const list = await listOn(
    t,
    {
      ...source,
      revocationsVersion: async () => {
        if (state.version > 1) {
          held = true
          await gate.promise
        }
        return source.revocationsVersion()
      },
    },
    { onChange: (all) => told.push(all) },
  )
  set([token('a')])
  await until(() => held)
  list.stop()
  gate.resolve(undefined)
  await until(() => list.current().length === 1)
  const { asked } = state
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.equal(state.asked, asked)
  t.same(told, [])
})

void test('a list that is stopped between two looks does not begin another', async (t) => {
  const { state, source } = makeSource()
  const list = await listOn(t, source, { interval: 5 })
  const { asked } = state
  list.stop()
  await new Promise((resolve) => setTimeout(resolve, 30))
  t.equal(state.asked, asked)
})

void test('what one handle of a file revokes and lifts, a list on another has by itself', async (t) => {
  const { folder, remove } = makeFolder()
  const file = join(folder, 'ownership.db')
  const [mine, other] = [await openSqliteStore(file), await openSqliteStore(file)]
  t.teardown(async () => {
    await Promise.all([mine.close(), other.close()])
    remove()
  })
  const list = await listOn(t, mine)
  const credential = { ...NONE, issuedAt: 5 }
  await other.revoke({ kind: 'user', userId: 'corp:alice', before: 6, revokedAt: 1 })
  await until(() => list.isRevoked('corp:alice', credential))
  t.equal(list.isRevoked('corp:bob', credential), false)
  t.equal(list.isRevoked('corp:alice', { ...NONE, issuedAt: 6 }), false)
  await other.lift({ userId: 'corp:alice' })
  await until(() => !list.isRevoked('corp:alice', credential))
  t.pass('and no longer')
})
