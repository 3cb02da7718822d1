/** The PostgreSQL of the tests: what they lean on when they take it down. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import pg from 'pg'
import { test, type Test } from 'tap'
import { AUTHORITY, SERVER } from '../../testing/support/certificates.ts'
import { processesOf } from '../../testing/support/postgres-processes.ts'
import { startPostgres, startPostgresServer, type TestServer } from '../../testing/support/postgres.ts'
import { until } from '../../testing/support/until.ts'

async function connect(t: Test, url: string, more: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, ...more })
  client.on('error', () => {})
  await client.connect()
  t.teardown(() => client.end().catch(() => {}))
  return client
}

/** A server with a table, in which one row is committed. */
async function startWithRow(t: Test): Promise<TestServer> {
  const server = await startPostgresServer(t)
  await server.admin('CREATE TABLE facts (fact text)')
  await server.admin('INSERT INTO facts VALUES ($1)', ['committed'])
  return server
}

const facts = ({ admin }: TestServer) => admin('SELECT fact FROM facts')

void test('every test has a database of its own, empty at the start', async (t) => {
  const [one, other] = [await startPostgres(t), await startPostgres(t)]
  await one.admin('CREATE TABLE facts (fact text)')
  const count = "SELECT count(*)::int AS tables FROM pg_tables WHERE schemaname = 'public'"
  t.same(await one.admin(count), [{ tables: 1 }])
  t.same(await other.admin(count), [{ tables: 0 }])
})

void test('a database goes with its test, whoever is connected', async (t) => {
  const { admin } = await startPostgres(t)
  let url = ''
  await t.test('the test', async (inner) => {
    ;({ url } = await startPostgres(inner))
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    await client.connect()
  })
  t.same(await admin('SELECT 1 FROM pg_database WHERE datname = $1', [new URL(url).pathname.slice(1)]), [])
})

void test('the server does not sort by bytes, and holds all of Unicode', async (t) => {
  const { admin } = await startPostgresServer(t)
  t.same(await admin("SELECT 'a' < 'B' AS sorted, length($1) AS length", ['🧵']), [{ sorted: true, length: 1 }])
})

void test('the server writes to the disk before it confirms, unless a test says otherwise', async (t) => {
  t.same(await (await startPostgresServer(t)).admin('SHOW fsync'), [{ fsync: 'on' }])
  t.same(await (await startPostgresServer(t, { settings: { fsync: 'off' } })).admin('SHOW fsync'), [{ fsync: 'off' }])
})

void test('a server that is killed forgets nothing that was committed', async (t) => {
  const server = await startWithRow(t)
  const client = await connect(t, server.url)
  await client.query("BEGIN; INSERT INTO facts VALUES ('not committed')")
  await server.kill()
  await t.rejects(facts(server), { code: 'ECONNREFUSED' })
  await server.restart()
  t.same(await facts(server), [{ fact: 'committed' }])
  t.match(server.log(), 'was not properly shut down')
})

void test('a server that is stopped comes up again as it was', async (t) => {
  const server = await startWithRow(t)
  const client = await connect(t, server.url)
  await server.stop()
  await t.rejects(client.query('SELECT 1'))
  await t.rejects(facts(server), { code: 'ECONNREFUSED' })
  await server.restart()
  t.same(await facts(server), [{ fact: 'committed' }])
  t.notMatch(server.log(), 'was not properly shut down')
  await server.restart()
  t.same(await facts(server), [{ fact: 'committed' }], 'from running, too')
})

void test('a server that is paused answers when it is resumed', async (t) => {
  const server = await startWithRow(t)
  const client = await connect(t, server.url)
  server.pause()
  let answered = 0
  const answers = [client.query('SELECT 1'), facts(server)].map((answer) => answer.then(() => (answered += 1)))
  await new Promise((resolve) => setTimeout(resolve, 200))
  t.equal(answered, 0)
  server.resume()
  await Promise.all(answers)
})

void test('those who are connected to a database are thrown out', async (t) => {
  const [one, other] = [await startPostgres(t), await startPostgres(t)]
  const [thrown, left] = [await connect(t, one.url), await connect(t, other.url)]
  await one.disconnect()
  await t.rejects(thrown.query('SELECT 1'))
  t.same((await left.query('SELECT 1 AS one')).rows, [{ one: 1 }])
})

void test('a server may ask for a password', async (t) => {
  const { url, admin } = await startPostgresServer(t, { password: 'p:/@ss' })
  t.same(await admin('SELECT 1 AS one'), [{ one: 1 }])
  const wrong = new URL(url)
  wrong.password = 'wrong'
  await t.rejects(connect(t, wrong.href), { code: '28P01' })
})

void test('a server may take TLS and nothing else', async (t) => {
  const { url, admin } = await startPostgresServer(t, { tls: SERVER })
  t.same(await admin('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'), [{ ssl: true }])
  await connect(t, url, { ssl: { ca: AUTHORITY } })
  await t.rejects(connect(t, url, { ssl: true }), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
  await t.rejects(connect(t, url), { code: '28000' })
})

void test('a server that can’t start says why', async (t) => {
  await t.rejects(startPostgresServer(t, { settings: { max_connections: 'many' } }), {
    message: /invalid value.*max_connections/,
  })
})

/** What there is of a server: its processes, and the folder of its data. */
const remains = (name: string) => [...processesOf(name), ...readdirSync(tmpdir()).filter((entry) => entry === name)]

async function nameOf(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ name: string }>("SELECT current_setting('cluster_name') AS name")
  await client.end()
  return rows[0]!.name
}

void test('a server goes with its test, whatever it has come to', async (t) => {
  for (const fate of ['runs', 'kill', 'stop', 'pause'] as const) {
    let name = ''
    await t.test(fate, async (inner) => {
      const server = await startPostgresServer(inner)
      name = await nameOf(server.url)
      inner.ok(remains(name).length > 2)
      if (fate !== 'runs') await server[fate]()
    })
    t.same(remains(name), [])
  }
})

void test('a server goes with its process, even with one that is killed', async (t) => {
  const support = JSON.stringify(new URL('../../testing/support/postgres-server.ts', import.meta.url))
  const code = `import { startServer } from ${support}; console.log((await startServer({})).port); setInterval(() => {}, 1e6)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  const [port] = (await once(child.stdout, 'data')) as [Buffer]
  const name = await nameOf(`postgres://postgres@127.0.0.1:${port.toString().trim()}/postgres`)
  t.ok(remains(name).length > 2)
  child.kill('SIGKILL')
  await until(() => remains(name).length === 0)
})
