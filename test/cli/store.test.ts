/** `threadwarden store`: brings a store to the schema of this program, and copies it. */
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { test } from 'tap'
import { command as backup } from '../../src/cli/store/backup.ts'
import { SCHEMA_VERSION } from '../../src/store/sqlite/schema.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { commandsOn, deployment, own, ownersIn } from './deployment.ts'
import { configFile } from '../../testing/support/program.ts'
import { run } from './in-process.ts'

/** A store of schema 1, as the first version of this program made it. */
function makeOld(file: string): void {
  const database = new Database(file)
  database.exec(`
    CREATE TABLE threads (
      scope TEXT NOT NULL COLLATE BINARY, thread_id TEXT NOT NULL COLLATE BINARY, user_id TEXT NOT NULL COLLATE BINARY,
      agent_id TEXT NOT NULL, created_at INTEGER NOT NULL, last_used_at INTEGER NOT NULL, name TEXT, deleted_at INTEGER,
      provisional INTEGER NOT NULL DEFAULT 0 CHECK (provisional IN (0, 1)), pending INTEGER NOT NULL DEFAULT 0,
      life INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (scope, thread_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX threads_by_user ON threads (user_id, scope);
    CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
    INSERT INTO threads (scope, thread_id, user_id, agent_id, created_at, last_used_at) VALUES ('', 't-1', 'corp:alice', '', 1, 1);
    PRAGMA user_version = 1;
  `)
  database.close()
}

void test('migrate brings an old store to the schema of this program, and says from which', async (t) => {
  const { file, folder } = configFile(t)
  const path = join(folder, 'ownership.db')
  const { command, data } = commandsOn(t, file)
  makeOld(path)
  const before = readFileSync(path)
  t.match(await command('store', 'migrate', '--check'), {
    code: 1,
    stdout: `${path} has schema 1, and this program needs schema ${SCHEMA_VERSION}\n`,
    stderr: '',
  })
  t.ok(readFileSync(path).equals(before), 'and only looked')
  t.match(await command('store', 'migrate'), {
    code: 0,
    stdout: `${path} was migrated from schema 1 to schema ${SCHEMA_VERSION}\n`,
  })
  t.same(await data('store', 'migrate', '--check'), { from: SCHEMA_VERSION, to: SCHEMA_VERSION, migrated: false })
  t.match(await command('store', 'migrate'), { code: 0, stdout: /the one of this program\n$/ })
  const store = await openSqliteStore(path)
  t.teardown(() => store.close())
  t.same(await ownersIn(store), ['t-1=corp:alice'])
})

void test('migrate makes a store that is not there; a look does not', async (t) => {
  const { file, folder } = configFile(t)
  const path = join(folder, 'ownership.db')
  const { command, data } = commandsOn(t, file)
  t.match(await command('store', 'migrate', '--check'), { code: 1, stdout: /does not exist: store migrate creates it/ })
  t.equal(existsSync(path), false)
  t.same(await data('store', 'migrate'), { from: null, to: SCHEMA_VERSION, migrated: true })
  t.equal(existsSync(path), true)
})

void test('migrate says what is wrong with a store that it cannot take', async (t) => {
  const { file, folder } = configFile(t)
  writeFileSync(join(folder, 'ownership.db'), 'this is no database, and long enough to be seen as none\n'.repeat(20))
  for (const check of [[], ['--check']])
    t.match(await commandsOn(t, file).command('store', 'migrate', ...check), {
      code: 1,
      stdout: '',
      stderr: /^error: .*ownership\.db cannot be opened/,
    })
})

void test('a backup holds what the store holds, and can be used in its place', async (t) => {
  const { folder, store, command } = await deployment(t)
  await own(store, 'corp:alice', 't-1')
  const target = join(folder, 'copy.db')
  const ended = await command('store', 'backup', target)
  t.match(ended, { code: 0, stdout: new RegExp(`was copied to ${target}: \\d+KiB, schema ${SCHEMA_VERSION}\\n$`), stderr: '' })
  t.equal(statSync(target).mode & 0o777, 0o600)
  const other = configFile(t)
  copyFileSync(target, join(other.folder, 'ownership.db'))
  t.match(await commandsOn(t, other.file).command('threads', 'owner', 't-1'), { code: 0, stdout: /^owner +corp:alice$/m })
})

void test('a backup is written over a file only with --force', async (t) => {
  const { folder, command, data } = await deployment(t)
  const target = join(folder, 'copy.db')
  writeFileSync(target, 'mine')
  t.match(await command('store', 'backup', target), {
    code: 1,
    stdout: '',
    stderr: /already exists: name another file, or replace it with --force\n$/,
  })
  t.equal(readFileSync(target, 'utf8'), 'mine')
  t.match(await data('store', 'backup', target, '--force'), { file: target, schema: SCHEMA_VERSION })
})

void test('a backup of a store that is not there is none', async (t) => {
  const { file, folder } = configFile(t)
  const target = join(folder, 'copy.db')
  t.match(await commandsOn(t, file).command('store', 'backup', target), {
    code: 1,
    stdout: '',
    stderr: /ownership\.db does not exist: check ownership\.store/,
  })
  t.equal(existsSync(target), false)
})

void test('a store on PostgreSQL is backed up otherwise', async (t) => {
  const { file } = configFile(t, { 'ownership.store': 'postgres://me@127.0.0.1:1/db' })
  await t.rejects(backup.run(['--config', file, 'copy.db'], process), {
    name: 'UsageError',
    message: /use pg_dump --schema=threadwarden/,
  })
})

void test('a command says which store it opens, where the environment decides that', async (t) => {
  const { file, folder } = configFile(t, { 'ownership.store': undefined })
  const other = join(folder, 'other')
  const stats = (environment: Readonly<Record<string, string>>) => run(t, ['threads', 'stats', '--config', file], { environment })
  const unset = `store: sqlite:${join(folder, 'data', 'ownership.db')} (the default, THREADWARDEN_DATA is not set: if it is set for the gateway, set it here too)\n`
  const set = `store: sqlite:${join(other, 'ownership.db')} (the default, in THREADWARDEN_DATA)\n`
  const missing = await stats({ THREADWARDEN_DATA: '' })
  t.match(missing, { code: 1, stdout: '' })
  t.ok(missing.stderr.startsWith(unset), missing.stderr)
  for (const [environment, said] of [
    [{}, unset],
    [{ THREADWARDEN_DATA: other }, set],
  ] as const) {
    t.match(await run(t, ['store', 'migrate', '--config', file], { environment }), { code: 0, stderr: said })
    t.match(await stats(environment), { code: 0, stderr: said })
    const copy = join(folder, `copy-${Object.keys(environment).length}`)
    const copied = await run(t, ['store', 'backup', copy, '--config', file], { environment })
    t.ok(copied.stderr.startsWith(said), copied.stderr)
    const revoked = await run(t, ['revoke', '--user', 'corp:alice', '--config', file], { environment })
    t.match(revoked, { code: 0, stderr: said })
  }
  const named = configFile(t).file
  t.match(await run(t, ['store', 'migrate', '--config', named], { environment: { THREADWARDEN_DATA: other } }), {
    code: 0,
    stderr: '',
  })
})
