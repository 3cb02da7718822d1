/** `threadwarden user`: all that the store holds of somebody, given to them or forgotten. */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import type { Store } from '../../src/store/port/store.ts'
import { deployment, key, own, ownersIn } from './deployment.ts'

const ALICE = 'corp:alice'
const BOB = 'corp:bob'

/** Something of everything. */
async function fillStore(store: Store): Promise<void> {
  await own(store, ALICE, 't-1', 't-2')
  await own(store, BOB, 'his')
  await store.rename(key('t-1'), ALICE, 'Plans')
  await store.bury(key('t-2'), ALICE, 1, 'unknown')
  const grant = { kind: 'user', right: 'read', grantedAt: 0 } as const
  await store.grant(key('t-1'), null, { ...grant, id: BOB, grantedBy: ALICE })
  await store.grant(key('his'), null, { ...grant, id: ALICE, grantedBy: BOB })
  await store.observe(key('seen'), ALICE, 'helper', 'run', 1000)
  await store.revoke({ kind: 'user', userId: ALICE, before: null, revokedAt: 0 })
}

void test('export writes everything that is held of a user, and nothing of others', async (t) => {
  const { store, command } = await deployment(t)
  await fillStore(store)
  const { code, stdout, stderr } = await command('user', 'export', ALICE)
  t.same({ code, stderr }, { code: 0, stderr: '' })
  const at = '1970-01-01T00:00:00.000Z'
  const seconds = '1970-01-01T00:00:01.000Z'
  t.match(JSON.parse(stdout), {
    user: ALICE,
    threads: [
      { thread: 't-1', user: ALICE, name: 'Plans', deleted: null },
      { thread: 't-2', user: ALICE, deleted: '1970-01-01T00:00:00.001Z' },
    ],
    granted: [{ thread: 't-1', user: BOB, right: 'read', grantedBy: ALICE, grantedAt: at }],
    received: [{ thread: 'his', user: ALICE, right: 'read', grantedBy: BOB, grantedAt: at }],
    observed: [{ thread: 'seen', agent: 'helper', firstUsed: seconds, lastUsed: seconds }],
    revocations: [{ user: ALICE, before: null, revokedAt: at }],
  })
})

void test('export writes to a file that only its owner reads, and over none', async (t) => {
  const { folder, store, command } = await deployment(t)
  await fillStore(store)
  const output = join(folder, 'alice.json')
  t.same(await command('user', 'export', ALICE, '--output', output), { code: 0, stdout: '', stderr: '' })
  t.match(JSON.parse(readFileSync(output, 'utf8')), { user: ALICE })
  t.equal(statSync(output).mode & 0o777, 0o600)
  writeFileSync(output, 'mine')
  t.match(await command('user', 'export', ALICE, '--output', output), { code: 1, stderr: /already exists: name another file/ })
  t.equal(readFileSync(output, 'utf8'), 'mine')
  const nowhere = join(folder, 'no', 'alice.json')
  t.match(await command('user', 'export', ALICE, '--output', nowhere), { code: 1, stderr: /cannot be written/ })
})

void test('of somebody unknown nothing is held', async (t) => {
  const { command } = await deployment(t)
  const { code, stdout } = await command('user', 'export', 'gone:eve')
  t.equal(code, 0)
  t.same(JSON.parse(stdout), { user: 'gone:eve', threads: [], granted: [], received: [], observed: [], revocations: [] })
})

void test('erase says what it would do, and does nothing without --yes', async (t) => {
  const { store, command, data } = await deployment(t)
  await fillStore(store)
  const before = await store.userData(ALICE)
  const asked = await command('user', 'erase', ALICE)
  t.match(asked, { code: 2, stderr: 'nothing was erased: add --yes to erase\n' })
  t.match(asked.stdout, /^corp:alice: 2 threads, 1 grant given, 1 received, observed on 1 thread\nnot erased: 1 revocation, /)
  t.match(await command('user', 'erase', ALICE, '--dry-run'), { code: 0, stderr: '' })
  t.match(await command('user', 'erase', ALICE, '--dry-run', '--yes'), { code: 0, stderr: '' }, 'the careful one of both')
  t.match(await data('user', 'erase', ALICE, '--dry-run'), {
    dryRun: true,
    threads: 2,
    granted: 1,
    received: 1,
    observed: 1,
    complete: false,
  })
  t.same(await store.userData(ALICE), before)
})

void test('erase forgets the user, and nobody can claim what they had', async (t) => {
  const { store, command } = await deployment(t)
  await fillStore(store)
  const { code, stdout } = await command('user', 'erase', ALICE, '--yes')
  t.equal(code, 0)
  t.match(stdout, /\nerased\n$/)
  t.match(await command('threads', 'owner', 't-1'), {
    code: 1,
    stdout: /^owner +none: the owner was revoked, or the data of the owner was erased$/m,
  })
  const { revocations, ...held } = await store.userData(ALICE)
  t.same(held, { threads: [], granted: [], received: [], observed: [] })
  t.equal(revocations.length, 1)
  t.same(await ownersIn(store), [`his=${BOB}`, 'seen=!', 't-1=!', 't-2=!'])
  for (const id of ['seen', 't-1', 't-2'])
    t.same(await store.claim(key(id), { userId: BOB, agentId: '', guest: false, now: 1 }), { outcome: 'foreign' })
})

void test('erase works on more than a step', async (t) => {
  const { store, data } = await deployment(t)
  const row = { scope: '', owner: ALICE, agentId: '', name: null, archived: false, createdAt: 1, lastUsedAt: 1 }
  const rows = Array.from({ length: 1100 }, (_one, at) => ({ ...row, threadId: `t-${at}` }))
  await store.import(rows, { dryRun: false, settleConflicts: false })
  t.match(await data('user', 'erase', ALICE, '--yes'), { dryRun: false, threads: 1100, complete: true })
  t.same((await store.userData(ALICE)).threads, [])
})
