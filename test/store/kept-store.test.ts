/**
 * Stores that an earlier version wrote, with rows of every kind: this version answers as that one did, and goes on as it did.
 * What docs/how-to/operate/shutdown-and-upgrade.md says of the update is tested on them, too.
 */
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { test, type Test } from 'tap'
import { migrate } from '../../src/store/postgres/migrations.ts'
import { MIGRATIONS } from '../../src/store/postgres/schema.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startPostgres, type TestDatabase } from '../../testing/support/postgres.ts'
import { answersOf, continuationOf } from './kept-store.ts'
import { openStoreOn, settingsOf } from './postgres-stores.ts'

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url))

/** What the version answered that wrote the stores. */
const { secrets, answers, continuation } = JSON.parse(readFileSync(fixture('store-answers.json'), 'utf8')) as {
  readonly secrets: { readonly sqlite: string; readonly postgres: string }
  readonly answers: object
  readonly continuation: object
}

/** A file with schema 6. */
function oldFile(t: Test): string {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  copyFileSync(fixture('store-schema-6.sqlite'), file)
  return file
}

/** A database with schema 4. */
async function oldDatabase(t: Test): Promise<TestDatabase> {
  const database = await startPostgres(t)
  await database.admin(readFileSync(fixture('store-schema-4.postgres.sql'), 'utf8'))
  return database
}

/** The statements of docs/how-to/operate/shutdown-and-upgrade.md that go back to the schema of the earlier version. */
function downgrade(engine: 'SQLite' | 'PostgreSQL'): string {
  const page = readFileSync(new URL('../../docs/how-to/operate/shutdown-and-upgrade.md', import.meta.url), 'utf8')
  const [, statements] = new RegExp(`^${engine}:\n\n\`\`\`sql\n(.*?)\`\`\``, 'ms').exec(page) ?? []
  if (statements === undefined) throw new Error(`no statements for ${engine}`)
  return statements
}

/** All that a file holds, and how. */
function contentsOf(file: string): unknown {
  const database = new Database(file)
  try {
    const schema = database.prepare<[], { name: string; sql: string | null; type: string }>(
      "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name",
    )
    const parts = schema.all()
    const rows = parts.filter(({ type }) => type === 'table').map(({ name }) => database.prepare(`SELECT * FROM ${name}`).all())
    return { parts, rows, version: database.pragma('user_version', { simple: true }) }
  } finally {
    database.close()
  }
}

/** The same of a database. */
async function contentsIn({ admin }: TestDatabase): Promise<unknown> {
  const columns = await admin(`SELECT table_name, ordinal_position, column_name, data_type, column_default, is_nullable
    FROM information_schema.columns WHERE table_schema = 'threadwarden' ORDER BY 1, 2`)
  const indexes = await admin("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'threadwarden' ORDER BY 1")
  const rows = []
  for (const table of ['threads', 'grants', 'observations', 'revocations', 'secrets', 'versions', 'migrations'])
    rows.push(await admin(`SELECT * FROM threadwarden.${table} ORDER BY 1, 2`))
  return { columns, indexes, rows }
}

void test('SQLite, schema 6', async (t) => {
  const store = await openSqliteStore(oldFile(t))
  t.teardown(() => store.close())
  t.same(await answersOf(store), { ...answers, secret: secrets.sqlite })
  t.same(await continuationOf(store), continuation)
})

void test('PostgreSQL, schema 4', async (t) => {
  const { url } = await oldDatabase(t)
  const store = await openStoreOn(t, settingsOf(url))
  t.same(await answersOf(store), { ...answers, secret: secrets.postgres })
  t.same(await continuationOf(store), continuation)
})

void test('SQLite: a gateway of the earlier version reads as before during an update, and every claim of it fails', async (t) => {
  const file = oldFile(t)
  const older = new Database(file)
  t.teardown(() => older.close())
  const read = older.prepare('SELECT user_id, deleted_at, provisional FROM threads ORDER BY scope, thread_id')
  const claim = older.prepare("UPDATE threads SET pending = pending + 1 WHERE thread_id = 'unconfirmed' AND life = 0")
  const before = read.all()
  await (await openSqliteStore(file)).close()
  t.same(read.all(), before)
  t.throws(() => claim.run(), { message: /no such column/ })
})

void test('PostgreSQL: a gateway of the earlier version reads as before during an update, and every claim of it fails', async (t) => {
  const { url, admin } = await oldDatabase(t)
  const read = () => admin('SELECT user_id, deleted_at, provisional FROM threadwarden.threads ORDER BY scope, thread_id')
  const before = await read()
  await openStoreOn(t, settingsOf(url))
  t.same(await read(), before)
  await t.rejects(admin("UPDATE threadwarden.threads SET pending = pending + 1 WHERE thread_id = 'unconfirmed' AND life = 0"), {
    code: '42703',
  })
})

void test('SQLite: the statements of the documentation go back to schema 6, with all rows', async (t) => {
  const file = oldFile(t)
  const before = contentsOf(file)
  await (await openSqliteStore(file)).close()
  t.notSame(contentsOf(file), before)
  const database = new Database(file)
  database.exec(downgrade('SQLite'))
  database.close()
  t.same(contentsOf(file), before)
  const again = await openSqliteStore(file)
  t.teardown(() => again.close())
  t.same(await answersOf(again), { ...answers, secret: secrets.sqlite })
})

void test('PostgreSQL: the statements of the documentation go back to schema 4, with all rows', async (t) => {
  const database = await oldDatabase(t)
  const settings = settingsOf(database.url)
  const before = await contentsIn(database)
  await migrate(settings)
  t.notSame(await contentsIn(database), before)
  await database.admin(downgrade('PostgreSQL'))
  t.same(await contentsIn(database), before)
  t.match(
    await migrate(settings, MIGRATIONS.slice(0, 4)),
    { applied: 4, missing: [] },
    'the earlier version takes it for its own',
  )
  const again = await openStoreOn(t, settings)
  t.same(await answersOf(again), { ...answers, secret: secrets.postgres })
})
