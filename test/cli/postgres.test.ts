/** The commands on a PostgreSQL store: the same as on SQLite, and a copy is what PostgreSQL has tools for. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { storeOf } from '../../src/config/store-place.ts'
import type { Store } from '../../src/store/port/store.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { startPostgres } from '../../testing/support/postgres.ts'
import { commandsOn, key, own, ownersIn } from './deployment.ts'
import { configFile } from '../../testing/support/program.ts'

const ALICE = 'corp:alice'
const BOB = 'corp:bob'

/** A configuration with an empty database. */
async function startDatabase(t: Test) {
  const { url } = await startPostgres(t)
  const { file, folder } = configFile(t, { 'ownership.store': url })
  return { url, folder, ...commandsOn(t, file) }
}

/** A connection of the test's own. */
async function openStore(t: Test, url: string): Promise<Store> {
  const named = storeOf({ store: url })
  if (named.kind !== 'postgres') throw new Error('it is a PostgreSQL store')
  const { store } = await openPostgresStore(named.settings, { cache: 0 })
  t.teardown(() => store.close())
  return store
}

void test('tables that are not there are made by migrate and by import, and by nothing else', async (t) => {
  const { command, data, folder } = await startDatabase(t)
  t.match(await command('threads', 'list'), {
    code: 1,
    stdout: '',
    stderr: /^error: the store .* does not exist: check ownership\.store/,
  })
  t.match(await data('store', 'migrate', '--check'), { from: null, migrated: false })
  const csv = join(folder, 'threads.csv')
  writeFileSync(csv, 'thread,user\na,corp:alice\n')
  t.match(await command('threads', 'import', csv, '--dry-run'), {
    code: 0,
    stdout: /^1 +would be added$/m,
    stderr: /does not exist: the import would create it/,
  })
  t.match(await data('store', 'migrate'), { from: null, migrated: true })
  t.match(await command('store', 'migrate', '--check'), { code: 0, stdout: /the one of this program\n$/ })
  t.match(await command('threads', 'import', csv), { code: 0, stdout: /^1 +added$/m, stderr: '' })
})

void test('threads are imported, shown, granted and transferred', async (t) => {
  const { url, folder, command, data } = await startDatabase(t)
  const csv = join(folder, 'threads.csv')
  const many = Array.from({ length: 1100 }, (_one, at) => `t-${at},corp:alice,`)
  const lines = [
    'thread,user,deleted',
    ...many,
    'T-0,corp:bob,',
    'dead,corp:alice,2026-01-31T12:00:00Z',
    'away,nobody,',
    'x,corp:alice,',
    'x,corp:bob,',
  ]
  writeFileSync(csv, lines.join('\n'))
  t.match(await data('threads', 'import', csv), { added: 1103, conflicts: 1, invalid: 0, complete: true })
  t.match(await data('threads', 'import', csv), { added: 0, same: 1103, conflicts: 1 })
  t.match(await data('threads', 'list', '--user', BOB), { threads: [{ thread: 'T-0' }], more: false })
  t.match(await data('threads', 'list', '--deleted'), { threads: [{ thread: 'dead', deleted: '2026-01-31T12:00:00.000Z' }] })
  t.match(await command('threads', 'owner', 'away'), { code: 1, stdout: /^owner +none: revoked, or imported as "nobody"$/m })
  t.match(await command('grants', 'add', '--thread', 't-1', '--group', 'corp:staff', '--right', 'read'), { code: 0 })
  t.match(await data('grants', 'list', '--group', 'corp:staff'), {
    grants: [{ thread: 't-1', right: 'read', grantedBy: 'operator' }],
  })
  t.match(await data('threads', 'transfer', '--from', ALICE, '--to', BOB), { complete: true })
  const store = await openStore(t, url)
  const { threads, deleted, owners, withheld, grants } = await store.stats()
  t.same({ deleted, owners, withheld, grants }, { deleted: 1, owners: 1, withheld: 1, grants: 1 })
  t.same(await data('threads', 'stats'), await store.stats())
  t.equal(threads, 1102)
  t.match(await command('grants', 'remove', '--thread', 't-1', '--group', 'corp:staff'), { code: 0 })
})

void test('what is observed is confirmed, a user is shown and erased, and what is exported comes back', async (t) => {
  const { url, folder, command, data } = await startDatabase(t)
  await command('store', 'migrate')
  const store = await openStore(t, url)
  await store.observe(key('one'), ALICE, '', 'run', 1)
  for (const user of [ALICE, BOB]) await store.observe(key('two'), user, '', 'run', 1)
  t.match(await data('threads', 'import', '--from-observed'), { added: 1, conflicts: 1 })
  await own(store, BOB, 'his')
  t.match(await command('threads', 'assign', 'two', '--to', BOB, '--expect', 'none'), { code: 0 })
  t.match(await command('threads', 'revoke', 'his'), { code: 0 })
  t.match(JSON.parse((await command('user', 'export', ALICE)).stdout), { threads: [{ thread: 'one' }] })
  t.match(await command('user', 'erase', ALICE, '--yes'), { code: 0, stdout: /\nerased\n$/ })
  t.same(await ownersIn(store), ['his=', 'one=!', `two=${BOB}`])
  const output = join(folder, 'threads.jsonl')
  t.match(await command('threads', 'export', '--output', output, '--all'), { code: 0 })
  t.equal(readFileSync(output, 'utf8').trimEnd().split('\n').length, 3)
  const other = await startDatabase(t)
  t.match(await other.data('threads', 'import', output), { added: 3, conflicts: 0, invalid: 0 })
  t.match(await data('threads', 'prune', '--unused-since', '0s'), { complete: true })
})

void test('a server that is away is told without a stack trace, and a copy is made otherwise', async (t) => {
  const { file } = configFile(t, { 'ownership.store': 'postgres://me:hunter2hunter2@127.0.0.1:1/db' })
  const { command } = commandsOn(t, file)
  for (const line of [
    ['threads', 'list'],
    ['threads', 'stats'],
    ['store', 'migrate'],
    ['store', 'migrate', '--check'],
  ]) {
    const { code, stdout, stderr } = await command(...line)
    t.same({ code, stdout }, { code: 1, stdout: '' })
    t.match(stderr, /^error: .*127\.0\.0\.1:1/)
    t.notMatch(stderr, /hunter2|\n {4}at /)
  }
  t.match(await command('store', 'backup', 'copy.db'), { code: 2, stderr: /use pg_dump --schema=threadwarden/ })
})
