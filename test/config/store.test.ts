/** Where ownership is kept: a file, or a PostgreSQL server; what is wrong with it is said without what is secret. */
import { test } from 'tap'
import { storeOf } from '../../src/config/store-place.ts'
import { needsRestart } from '../../src/snapshot/reload.ts'
import { accepted, faultsIn, type Changes, type Surroundings } from '../../testing/support/configuration.ts'

const POSTGRES = 'postgres://gateway@db.example.com/chat'

function stored(changes: Changes, surroundings?: Surroundings) {
  return storeOf(accepted({ 'ownership.store': POSTGRES, ...changes }, surroundings).config.ownership)
}

function settings(changes: Changes, surroundings?: Surroundings) {
  const store = stored(changes, surroundings)
  if (store.kind !== 'postgres') throw new Error('a file')
  return store.settings
}

void test('a store of no kind is refused', (t) => {
  for (const store of ['', 'sqlite:', 'mysql://host/db', './ownership.db', 'SQLITE:./a.db', ' sqlite:a', 'postgress://u@h/d']) {
    t.match(faultsIn({ 'ownership.store': store }), [{ path: 'ownership.store', message: 'is not a store' }])
  }
  t.end()
})

void test('a URL says host, port, database and user; the rest has defaults', (t) => {
  t.same(stored({}), {
    kind: 'postgres',
    settings: {
      host: 'db.example.com',
      port: 5432,
      database: 'chat',
      user: 'gateway',
      password: null,
      schema: 'threadwarden',
      tls: 'verify',
      ca: null,
      pool: 10,
      connectTimeout: 5000,
      statementTimeout: 5000,
    },
    cache: 100_000,
  })
  t.same(stored({ 'ownership.postgres': {} }), stored({}), 'whether or not anything is said of how it is spoken to')
  t.end()
})

void test('what is special in a URL is percent-encoded', (t) => {
  t.match(settings({ 'ownership.store': 'postgresql://a%40b:p%2Fq@[::1]:6432/my%20chat' }), {
    host: '::1',
    port: 6432,
    database: 'my chat',
    user: 'a@b',
    password: 'p/q',
  })
  t.match(settings({ 'ownership.store': 'postgres://a@%2Frun%2Fpostgresql/chat' }), { host: '/run/postgresql' })
  t.end()
})

void test('a URL that leaves something out, or says too much, is refused without being repeated', (t) => {
  for (const [store, message] of [
    ['postgres://db.example.com/chat', 'names no user'],
    ['postgres://:hunter2@db.example.com/chat', 'names no user'],
    ['postgres://gateway:hunter2@db.example.com', 'names no database'],
    ['postgres://gateway:hunter2@db.example.com/', 'names no database'],
    ['postgres://gateway:hunter2@db.example.com/chat/more', 'names no database'],
    ['postgres://gateway:hunter2@a,b/chat', 'names no host'],
    ['postgres:///chat', 'names no user'],
    ['postgres:gateway', 'names no user'],
    ['postgres://gateway:hunter2@db.example.com/chat?sslmode=disable', 'takes no parameters'],
    ['postgres://gateway:hunter2@db.example.com/chat#x', 'takes no parameters'],
    ['postgres://gateway:hunter2@db.example.com:99999/chat', 'is not a PostgreSQL URL'],
    ['postgres://gateway:hunter2%@db.example.com/chat', 'is not a PostgreSQL URL'],
    ['postgres://gateway:hunter2@db.example.com/%00', 'is not a PostgreSQL URL'],
  ] as const) {
    const faults = faultsIn({ 'ownership.store': store })
    t.match(faults, [{ path: 'ownership.store', message, hint: /./ }], store)
    t.equal(faults.length, 1, store)
    t.notMatch(JSON.stringify(faults), /hunter2/)
  }
  t.end()
})

void test('the keys of the server are checked', (t) => {
  for (const [key, value] of [
    ['schema', 'Threads'],
    ['schema', '1st'],
    ['schema', 'a-b'],
    ['schema', 'a'.repeat(64)],
    ['schema', 'pg_mine'],
    ['schema', ''],
    ['tls', 'prefer'],
    ['pool', 0],
    ['pool', 201],
    ['connectTimeout', '0s'],
    ['connectTimeout', '2m'],
    ['statementTimeout', '10ms'],
    ['cache', -1],
    ['password', ''],
  ] as const) {
    const path = `ownership.postgres.${key}`
    t.match(faultsIn({ 'ownership.store': POSTGRES, [path]: value }), [{ path }], `${key}: ${value}`)
  }
  t.end()
})

void test('they go with a PostgreSQL store alone', (t) => {
  const fault = { path: 'ownership.postgres', message: 'needs a PostgreSQL store', hint: /./ }
  t.match(faultsIn({ 'ownership.postgres': { pool: 5 } }), [fault])
  t.match(faultsIn({ 'ownership.postgres': {}, 'ownership.store': 'sqlite:./a.db' }), [fault])
  t.end()
})

void test('a password stands in one place', (t) => {
  const twice = { 'ownership.store': 'postgres://a:hunter2@h/d', 'ownership.postgres.password': 'hunter3' }
  t.match(faultsIn(twice), [{ path: 'ownership.postgres.password', message: 'is also in ownership.store' }])
  t.end()
})

void test('a password comes from a file, and is no warning then', (t) => {
  const written = { 'ownership.store': POSTGRES, 'ownership.postgres.password': '${file:secret}' }
  const { config, warnings } = accepted(written, { files: { secret: 'hunter2\n' } })
  t.match(storeOf(config.ownership), { settings: { password: 'hunter2' } })
  t.same(
    warnings.filter(({ path }) => path.startsWith('ownership')),
    [],
  )
  t.end()
})

void test('a password in plain is warned about, and not repeated', (t) => {
  for (const [path, changes] of [
    ['ownership.postgres.password', { 'ownership.store': POSTGRES, 'ownership.postgres.password': 'hunter2' }],
    ['ownership.store', { 'ownership.store': 'postgres://a:hunter2@localhost/d' }],
  ] as const) {
    const { warnings } = accepted(changes)
    t.match(
      warnings.filter((warning) => warning.path.startsWith('ownership')),
      [{ path, message: /secret in plain/, hint: /file:/ }],
    )
    t.notMatch(JSON.stringify(warnings), /hunter2/)
  }
  t.end()
})

void test('TLS is off by default within this machine alone', (t) => {
  for (const host of ['localhost', '127.0.0.1', '[::1]', '%2Frun%2Fpostgresql']) {
    t.equal(settings({ 'ownership.store': `postgres://a@${host}/d` }).tls, 'off', host)
  }
  for (const host of ['db.example.com', '10.0.0.5', '[fd00::1]', 'localhost.example.com']) {
    t.equal(settings({ 'ownership.store': `postgres://a@${host}/d` }).tls, 'verify', host)
  }
  t.equal(settings({ 'ownership.store': 'postgres://a@localhost/d', 'ownership.postgres.tls': 'verify' }).tls, 'verify')
  t.end()
})

void test('TLS that is off on the way to another machine is warned about', (t) => {
  const off = { 'ownership.store': POSTGRES, 'ownership.postgres.tls': 'off' }
  const { warnings } = accepted(off)
  t.match(
    warnings.filter(({ path }) => path.startsWith('ownership')),
    [{ path: 'ownership.postgres.tls', message: /anyone on the network path/ }],
  )
  const local = accepted({ ...off, 'ownership.store': 'postgres://a@localhost/d' })
  t.notMatch(
    local.warnings.map(({ path }) => path),
    ['ownership.postgres.tls'],
  )
  t.end()
})

void test('a CA that would have no effect is refused', (t) => {
  const local = { 'ownership.store': 'postgres://a@localhost/d', 'ownership.postgres.ca': 'ca.pem' }
  t.match(faultsIn(local), [{ path: 'ownership.postgres.ca', message: 'has no effect with tls: off' }])
  t.end()
})

void test('the CA is a path from the folder of the configuration', (t) => {
  const { ca } = settings({ 'ownership.postgres.ca': './ca.pem' })
  t.match(ca, /^\/.+\/ca\.pem$/)
  t.end()
})

void test('what is said of the server holds from start to end of a process', (t) => {
  const { config } = accepted({ 'ownership.store': POSTGRES })
  const other = accepted({ 'ownership.store': POSTGRES, 'ownership.postgres.pool': 20 })
  t.ok(needsRestart(config, other.config).includes('ownership.postgres'))
  t.notOk(needsRestart(config, config).includes('ownership.postgres'))
  t.end()
})
