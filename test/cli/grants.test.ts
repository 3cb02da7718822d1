/** `threadwarden grants`: grants are those that the store decides by. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { deployment, key, own } from './deployment.ts'

const ALICE = 'corp:alice'
const BOB = { userId: 'corp:bob', groups: ['corp:staff'] }

void test('a grant holds until it is taken back', async (t) => {
  const { store, command } = await deployment(t)
  await own(store, ALICE, 't-1')
  const granted = async (): Promise<unknown> => (await store.accessTo(key('t-1'), BOB)).row?.granted
  const user = ['--thread', 't-1', '--user', 'corp:bob'] as const
  const group = ['--thread', 't-1', '--group', 'corp:staff'] as const
  t.match(await command('grants', 'add', ...group, '--right', 'read'), { code: 0, stdout: 'group corp:staff may read t-1\n' })
  t.equal(await granted(), 'read')
  t.match(await command('grants', 'add', ...user, '--right', 'write'), { code: 0, stdout: 'user corp:bob may write t-1\n' })
  t.equal(await granted(), 'write')
  t.match(await command('grants', 'add', ...user, '--right', 'read'), { code: 0 })
  t.equal(await granted(), 'read')
  t.match(await command('grants', 'add', ...user, '--right', 'read'), {
    code: 0,
    stdout: 'user corp:bob may read t-1, as before\n',
  })
  t.match(await command('grants', 'remove', ...group), { code: 0, stdout: 'group corp:staff no longer has a grant on t-1\n' })
  t.match(await command('grants', 'remove', ...user), { code: 0 })
  t.equal(await granted(), null)
  t.match(await command('grants', 'remove', ...user), {
    code: 1,
    stdout: '',
    stderr: /^user corp:bob has no grant on t-1: threadwarden grants list/,
  })
})

void test('nothing is granted to the owner', async (t) => {
  const { store, command } = await deployment(t)
  await own(store, ALICE, 't-1')
  t.match(await command('grants', 'add', '--thread', 't-1', '--user', ALICE, '--right', 'read'), {
    code: 1,
    stdout: '',
    stderr: 'corp:alice owns t-1: an owner needs no grant\n',
  })
  t.same((await store.thread(key('t-1')))?.grants, [])
})

void test('grants are shown by thread, by user and by group', async (t) => {
  const { store, command, data } = await deployment(t)
  await own(store, ALICE, 'a', 'b')
  const grant = { kind: 'user', id: 'corp:bob', right: 'read', grantedBy: ALICE, grantedAt: 0 } as const
  await store.grant(key('a'), null, grant)
  await store.grant(key('b'), null, { ...grant, right: 'write' })
  await store.grant(key('b'), null, { ...grant, kind: 'group', id: 'corp:staff' })
  t.match(
    (await command('grants', 'list', '--thread', 'a')).stdout,
    /^read to user corp:bob, by corp:alice on 1970-01-01T00:00:00\.000Z\n$/,
  )
  t.match(
    (await command('grants', 'list', '--user', 'corp:bob')).stdout,
    /^a: read to user corp:bob, .*\nb: write to user corp:bob, .*\n$/,
  )
  const grantedAt = '1970-01-01T00:00:00.000Z'
  t.same(await data('grants', 'list', '--group', 'corp:staff'), {
    grants: [{ thread: 'b', group: 'corp:staff', right: 'read', grantedBy: ALICE, grantedAt }],
  })
  t.match(await command('grants', 'list', '--group', 'corp:bob'), { code: 0, stdout: '', stderr: /there are no grants/ })
})

void test('nothing is granted on a thread that nobody owns, or that was deleted', async (t) => {
  const { store, command, data } = await deployment(t)
  await own(store, ALICE, 'dead')
  await store.bury(key('dead'), ALICE, 1, 'unknown')
  for (const id of ['dead', 'never']) {
    const add = ['grants', 'add', '--thread', id, '--user', 'corp:bob', '--right', 'read'] as const
    t.match(await command(...add), {
      code: 1,
      stdout: '',
      stderr: new RegExp(`${id} has no owner, or was deleted: threadwarden threads owner`),
    })
    t.match(await data(...add), { outcome: 'not-owner' })
    t.match(await command('grants', 'list', '--thread', id), {
      code: 1,
      stdout: '',
      stderr: new RegExp(`${id} does not exist or was deleted`),
    })
  }
})

void test('a thread has a hundred grants by operators at most', async (t) => {
  const { store, command } = await deployment(t)
  await own(store, ALICE, 'a')
  for (let at = 0; at < 100; at += 1)
    await store.grant(key('a'), null, { kind: 'user', id: `corp:u-${at}`, right: 'read', grantedBy: 'operator', grantedAt: at })
  const ended = await command('grants', 'add', '--thread', 'a', '--user', 'corp:bob', '--right', 'read')
  t.match(ended, { code: 1, stdout: '', stderr: /a has 100 grants by operators, which is the most/ })
})

void test('where the policy has no sharing it says that grants have no effect, and keeps them', async (t) => {
  const { file, folder, store, command } = await deployment(t, { policy: 'mine.yaml' })
  writeFileSync(
    join(folder, 'mine.yaml'),
    'version: 1\nsharing: false\nrules:\n  - { name: info, routes: [info], allow: [signed-in] }\n',
  )
  await own(store, ALICE, 'a')
  const add = ['--thread', 'a', '--user', 'corp:bob', '--right', 'read'] as const
  t.match(
    await command('grants', 'add', ...add),
    { code: 0, stderr: /^warning: the policy .*mine\.yaml does not set sharing: true, so grants have no effect\n$/ },
    file,
  )
  t.match(await command('grants', 'list', '--thread', 'a'), {
    code: 0,
    stdout: /^read to user corp:bob/,
    stderr: /does not set sharing/,
  })
})
