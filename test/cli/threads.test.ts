/** `threadwarden threads`: what it shows is what the store holds, and what it changes is in force for whoever uses the store. */
import { test } from 'tap'
import { NOBODY } from '../../src/store/port/thread.ts'
import { until } from '../../testing/support/until.ts'
import { deployment, key, own, ownersIn } from './deployment.ts'

const ALICE = 'corp:alice'
const BOB = 'corp:bob'
const DAY = 86_400_000

void test('list shows threads with their owners, by owner, agent and whether they are deleted', async (t) => {
  const { store, command, data } = await deployment(t)
  await own(store, ALICE, 't-1', 't-2')
  await own(store, BOB, 't-3')
  await store.rename(key('t-1'), ALICE, 'Plans \u001b[31m')
  await store.archive(key('t-1'), ALICE, { archived: true })
  await store.bury(key('t-2'), ALICE, Date.parse('2026-01-31T12:00:00Z'), 'unknown')
  const shown = await command('threads', 'list')
  t.match(shown, { code: 0, stderr: '' })
  t.match(
    shown.stdout,
    /^THREAD +OWNER +AGENT +LAST USED +STATE +NAME\nt-1 +corp:alice +default +\S+ +archived +Plans \\u\{1b\}\[31m\nt-3 +corp:bob +default +\S+\n$/,
  )
  t.match(await data('threads', 'list', '--deleted'), {
    threads: [{ thread: 't-2', deleted: '2026-01-31T12:00:00.000Z' }],
    more: false,
  })
  t.match(await data('threads', 'list', '--all', '--user', ALICE), {
    threads: [{ thread: 't-1', name: 'Plans \u001b[31m', archived: true, confirmed: true }, { thread: 't-2' }],
  })
  t.match(await data('threads', 'list', '--agent', 'other'), { threads: [] })
  t.match(await command('threads', 'list', '--agent', 'other'), { code: 0, stdout: '', stderr: 'no thread matches\n' })
})

void test('a list that is cut says so', async (t) => {
  const { store, command, data } = await deployment(t)
  await own(store, ALICE, 'a', 'b', 'c')
  const two = await command('threads', 'list', '--limit', '2')
  t.match(two, {
    code: 0,
    stderr: /^more than 2 threads match: use --limit to show more, or threadwarden threads export for all\n$/,
  })
  t.match(await data('threads', 'list', '--limit', '2'), { threads: [{ thread: 'a' }, { thread: 'b' }], more: true })
  t.match(await data('threads', 'list', '--limit', '3'), { more: false })
})

void test('owner shows all that is known of a thread', async (t) => {
  const { store, command, data } = await deployment(t)
  await own(store, ALICE, 't-1')
  await store.grant(key('t-1'), null, { kind: 'group', id: 'corp:staff', right: 'write', grantedBy: ALICE, grantedAt: 0 })
  await store.observe(key('seen'), BOB, '', 'run', 1)
  const shown = await command('threads', 'owner', 't-1')
  t.match(shown, { code: 0, stderr: '' })
  t.match(shown.stdout, /^thread +t-1\nowner +corp:alice\nagent +default\n/)
  t.match(shown.stdout, /^granted +write to group corp:staff, by corp:alice on 1970-01-01T00:00:00\.000Z$/m)
  t.match(await data('threads', 'owner', 't-1'), {
    thread: 't-1',
    row: { thread: 't-1', user: ALICE },
    grants: [{ group: 'corp:staff', right: 'write', grantedBy: ALICE }],
    observed: [],
  })
  t.match(await data('threads', 'owner', 'seen'), { row: null, observed: [BOB] })
  const stderr = 'seen has no owner: corp:bob ran it under enforcement: observe\n'
  t.same(await command('threads', 'owner', 'seen'), { code: 1, stdout: '', stderr })
  t.match(await command('threads', 'owner', 'never'), { code: 1, stderr: 'never has no owner: the store does not know it\n' })
})

void test('assign gives a thread to a user, whoever had it', async (t) => {
  const { store, command, data } = await deployment(t)
  await own(store, ALICE, 't-1')
  t.match(await command('threads', 'assign', 't-1', '--to', BOB), {
    code: 0,
    stdout: `t-1 belongs to ${BOB}; before: ${ALICE}\n`,
  })
  t.match(await command('threads', 'assign', 't-1', '--to', BOB), { code: 0, stdout: `t-1 belongs to ${BOB} already\n` })
  t.same(await data('threads', 'assign', 'new', '--to', BOB), { thread: 'new', outcome: 'assigned', before: null })
  t.same(await ownersIn(store), [`new=${BOB}`, `t-1=${BOB}`])
})

void test('assign changes nothing where somebody else has the thread than was expected', async (t) => {
  const { store, command, data } = await deployment(t)
  await own(store, ALICE, 't-1')
  await own(store, ALICE, 't-2')
  await store.withhold(key('t-2'), 1)
  for (const expected of [BOB, 'none', 'nobody']) {
    const stderr = `nothing was changed: the owner of t-1 is ${ALICE}\n`
    t.same(await command('threads', 'assign', 't-1', '--to', BOB, '--expect', expected), { code: 1, stdout: '', stderr })
  }
  t.same(await data('threads', 'assign', 't-2', '--to', BOB, '--expect', 'none'), {
    thread: 't-2',
    outcome: 'changed',
    user: 'nobody',
  })
  t.same(await data('threads', 'assign', 'new', '--to', BOB, '--expect', ALICE), {
    thread: 'new',
    outcome: 'changed',
    user: null,
  })
  t.same(await ownersIn(store), [`t-1=${ALICE}`, `t-2=${NOBODY}`])
  t.match(await command('threads', 'assign', 't-1', '--to', BOB, '--expect', ALICE), { code: 0 })
  t.match(await command('threads', 'assign', 't-2', '--to', BOB, '--expect', 'nobody'), { code: 0 })
  t.match(await command('threads', 'assign', 'new', '--to', BOB, '--expect', 'none'), { code: 0 })
  t.same(await ownersIn(store), [`new=${BOB}`, `t-1=${BOB}`, `t-2=${BOB}`])
})

void test('transfer gives all threads of a user to another, deleted ones too, also from an issuer that is gone', async (t) => {
  const { store, command, data } = await deployment(t)
  await own(store, 'gone:alice', ...Array.from({ length: 600 }, (_one, at) => `t-${at}`))
  await store.bury(key('t-0'), 'gone:alice', 1, 'unknown')
  await own(store, BOB, 'his')
  t.match(await command('threads', 'transfer', '--from', 'gone:alice', '--to', ALICE), {
    code: 0,
    stdout: `600 rows of gone:alice moved to ${ALICE}\n`,
    stderr: '',
  })
  t.match((await store.stats()).owners, 2)
  t.match((await store.thread(key('t-0')))?.row, { owner: ALICE, deletedAt: 1 })
  t.same(
    await data('threads', 'transfer', '--from', 'gone:alice', '--to', ALICE),
    { moved: 0, complete: true },
    'nothing is left',
  )
})

void test('transfer --dry-run says what would move, and changes nothing', async (t) => {
  const { store, command, data } = await deployment(t)
  await own(store, ALICE, 't-1', 't-2', 't-3')
  await own(store, BOB, 'his', 'hers')
  await store.bury(key('t-3'), ALICE, 1, 'unknown')
  await store.grant(key('his'), null, { kind: 'user', id: ALICE, right: 'read', grantedBy: BOB, grantedAt: 1 })
  await store.observe(key('seen'), ALICE, 'default', 'run', 1)
  const before = [await ownersIn(store), await store.stats(), await store.userData(ALICE), await store.userData(BOB)]
  const all = ['threads', 'transfer', '--from', ALICE, '--to', BOB] as const
  t.match(await command(...all, '--dry-run'), {
    code: 0,
    stdout: `5 rows of ${ALICE} would move to ${BOB}: 3 threads, 1 of them deleted\n`,
    stderr: '',
  })
  t.same(await data(...all, '--dry-run'), { wouldMove: 5, threads: 3, deleted: 1 })
  t.match(await command(...all, '--thread', 't-1', '--dry-run'), { code: 0, stdout: `t-1 of ${ALICE} would move to ${BOB}\n` })
  t.same(await data(...all, '--thread', 't-1', '--dry-run'), { wouldMove: 1 })
  t.match(await command(...all, '--thread', 'his', '--dry-run'), { code: 1, stderr: /^his does not belong to/ })
  t.same([await ownersIn(store), await store.stats(), await store.userData(ALICE), await store.userData(BOB)], before)
  t.same(await data(...all), { moved: 5, complete: true }, 'as many as were told')
})

void test('transfer of one thread moves that one, and only if it is theirs and alive', async (t) => {
  const { store, command, data } = await deployment(t)
  await own(store, ALICE, 'a', 'b', 'dead')
  await store.bury(key('dead'), ALICE, 1, 'unknown')
  const one = (id: string): readonly string[] => ['threads', 'transfer', '--from', ALICE, '--to', BOB, '--thread', id]
  t.match(await command(...one('a')), { code: 0, stdout: `a of ${ALICE} moved to ${BOB}\n` })
  t.match(await command(...one('a')), {
    code: 1,
    stdout: '',
    stderr: /^a does not belong to corp:alice: threadwarden threads owner/,
  })
  t.match(await command(...one('dead')), { code: 1, stderr: /^dead was deleted by corp:alice: threadwarden threads assign/ })
  t.match(await command(...one('never')), { code: 1, stderr: /^never does not belong to/ })
  t.same(await data(...one('b')), { moved: 1, complete: true })
  t.same(await ownersIn(store), [`a=${BOB}`, `b=${BOB}`, `dead=${ALICE}!`])
})

void test('revoke takes the owner away, and nobody can claim the thread', async (t) => {
  const { store, command, data } = await deployment(t)
  await own(store, ALICE, 't-1', 't-2')
  t.match(await command('threads', 'revoke', 't-1'), { code: 0, stdout: /^t-1 has no owner, and no user can claim it/ })
  t.same(await data('threads', 'revoke', 't-2'), { thread: 't-2', revoked: true })
  const claim = { userId: ALICE, agentId: '', guest: false, now: Date.now() }
  t.same(await store.claim(key('t-1'), claim), { outcome: 'foreign' })
  t.match(await command('threads', 'revoke', 'never'), {
    code: 1,
    stdout: '',
    stderr: /^the table has no thread never: give it an owner with threadwarden threads assign/,
  })
  t.match(await command('threads', 'owner', 't-1'), { code: 1, stdout: /^owner +none: revoked, or imported as "nobody"$/m })
})

void test('what is changed here is told to a process that runs on the store', async (t) => {
  const { store, command } = await deployment(t)
  await own(store, ALICE, 't-1')
  let news = 0
  t.teardown(store.onInvalidation(() => void (news += 1)))
  await command('threads', 'assign', 't-1', '--to', BOB)
  await until(() => news > 0)
  t.pass('told')
})

void test('prune throws away what nobody used, and says what that means', async (t) => {
  const { store, command, data } = await deployment(t)
  const now = Date.now()
  const row = { scope: '', owner: ALICE, agentId: '', name: null, archived: false, createdAt: 1 }
  const rows = [
    { ...row, threadId: 'old', lastUsedAt: now - 100 * DAY },
    { ...row, threadId: 'young', lastUsedAt: now - 10 * DAY },
  ]
  await store.import(rows, { dryRun: false, settleConflicts: false })
  const prune = ['threads', 'prune', '--unused-since', '30d']
  const dry = await command(...prune, '--dry-run')
  t.match(dry, { code: 0, stdout: '1 row would be deleted\n' })
  t.match(dry.stderr, /^warning: unknownThread is claim: the first user who runs a deleted id owns it/)
  t.equal((await ownersIn(store)).length, 2)
  t.same(await data(...prune), { dryRun: false, pruned: 1, complete: true })
  t.same(await ownersIn(store), [`young=${ALICE}`])
})

void test('prune throws away deleted threads of which the upstream said that they are gone', async (t) => {
  const { store, command } = await deployment(t, { 'ownership.unknownThread': 'deny' })
  await own(store, ALICE, 'gone', 'perhaps', 'young')
  const then = Date.parse('2026-01-31T12:00:00Z')
  await store.bury(key('gone'), ALICE, then - 1, 'deleted')
  await store.bury(key('perhaps'), ALICE, then - 1, 'unknown')
  await store.bury(key('young'), ALICE, then, 'deleted')
  const pruned = await command('threads', 'prune', '--deleted-before', '2026-01-31T12:00:00Z')
  t.same(pruned, { code: 0, stdout: '1 row was deleted\n', stderr: '' })
  t.same(await ownersIn(store), [`perhaps=${ALICE}!`, `young=${ALICE}!`])
})

void test('prune takes both rules, each for its own rows', async (t) => {
  const { store, data } = await deployment(t, { 'ownership.unknownThread': 'verify' })
  await own(store, ALICE, 'dead', 'live')
  await store.bury(key('dead'), ALICE, 1, 'deleted')
  const row = { scope: '', owner: BOB, agentId: '', name: null, archived: false, createdAt: 1, lastUsedAt: 1, threadId: 'old' }
  await store.import([row], { dryRun: false, settleConflicts: false })
  t.same(await data('threads', 'prune', '--unused-since', '1h', '--deleted-before', '1h'), {
    dryRun: false,
    pruned: 2,
    complete: true,
  })
  t.same(await ownersIn(store), [`live=${ALICE}`])
})

void test('stats counts what there is', async (t) => {
  const { store, command, data } = await deployment(t)
  await own(store, ALICE, 'a', 'b')
  await store.bury(key('b'), ALICE, 1, 'unknown')
  for (const user of [ALICE, BOB]) await store.observe(key('seen'), user, '', 'run', 1)
  t.same(await data('threads', 'stats'), await store.stats())
  const { code, stdout } = await command('threads', 'stats')
  t.equal(code, 0)
  t.match(stdout, /^1 +threads/m)
  t.match(stdout, /^1 +of these, used by more than one user$/m)
})
