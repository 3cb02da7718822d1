/**
 * Real PostgreSQL for tests. A test gets an empty database of its own on a server that all tests of the process share: the
 * one named by `THREADWARDEN_TEST_POSTGRES` (the postgres:// URL of a superuser), or one from the binaries that npm brings.
 * What takes a server down wants one of its own.
 */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { Test } from 'tap'
import type { ServerOptions } from './postgres-data.ts'
import { startServer, type Server } from './postgres-server.ts'

/** Runs one statement as superuser, on a connection of its own; gives the rows. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>

/** A database. */
export interface TestDatabase {
  /** postgres://…, with the role and its password, and no parameters. The role is a superuser. */
  readonly url: string
  readonly admin: Query
  /** Throws out everybody who is connected to it. */
  readonly disconnect: () => Promise<void>
}

/** A server of a test's own; its database is `postgres`, empty at the start. */
export type TestServer = TestDatabase & Omit<Server, 'remove'>

/** The URL of the server that the tests of this process share. */
let shared: string | Promise<string> | undefined

/** Makes an empty database that goes when the test is over, whoever is still connected to it. */
export async function startPostgres(t: Test): Promise<TestDatabase> {
  shared ??= process.env['THREADWARDEN_TEST_POSTGRES'] ?? startServer({}).then((server) => urlOf(server, {}))
  const server = await shared
  const maintain = queriesOf(server)
  const name = `threadwarden_test_${randomBytes(8).toString('hex')}`
  await maintain(`CREATE DATABASE ${name}`)
  t.teardown(() => maintain(`DROP DATABASE ${name} WITH (FORCE)`))
  const url = new URL(server)
  url.pathname = `/${name}`
  return databaseOf(url.href)
}

/** Starts a server of the test's own; it goes when the test is over, in whatever state it is by then. */
export async function startPostgresServer(t: Pick<Test, 'teardown'>, options: ServerOptions = {}): Promise<TestServer> {
  const { remove, ...server } = await startServer(options)
  t.teardown(remove)
  return { ...server, ...databaseOf(urlOf(server, options), options.tls !== undefined) }
}

function urlOf({ port }: { readonly port: number }, { password }: ServerOptions): string {
  const secret = password === undefined ? '' : `:${encodeURIComponent(password)}`
  return `postgres://postgres${secret}@127.0.0.1:${port}/postgres`
}

function databaseOf(url: string, tls = false): TestDatabase {
  const admin = queriesOf(url, tls)
  const others = `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`
  const disconnect = async (): Promise<void> => {
    await admin(others)
  }
  return { url, admin, disconnect }
}

function queriesOf(url: string, tls = false): Query {
  return async (text, values = []) => {
    // Who it is that answers on loopback does not matter here.
    const client = new pg.Client({ connectionString: url, ...(tls ? { ssl: { rejectUnauthorized: false } } : {}) })
    // The server may be killed meanwhile: then the query fails, and that is enough.
    client.on('error', () => {})
    await client.connect()
    try {
      const { rows } = await client.query<Record<string, unknown>>(text, [...values])
      return rows
    } finally {
      await client.end()
    }
  }
}
