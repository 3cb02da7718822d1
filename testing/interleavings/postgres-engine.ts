/**
 * Histories on a real PostgreSQL server: each statement that the store sends through the driver waits for the schedule. One that
 * has to wait for a lock goes on by itself when the server gives it, as it does behind a real gateway.
 *
 * Notifications come whenever they like, and are not listened for: processes hear of changes by asking, which is the later way
 * (src/store/postgres/change-feed.ts).
 */
import pg from 'pg'
import type { PostgresSettings } from '../../src/postgres/settings.ts'
import type { Store } from '../../src/store/port/store.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { callNow, plain, type Engine, type Row } from './engine.ts'
import { realTimers, type Scheduler } from './scheduler.ts'

const SCHEMA = 'threadwarden'
const TABLES = ['threads', 'grants', 'observations', 'revocations']

const ROWS = `SELECT user_id AS owner, deleted_at IS NOT NULL AS deleted, provisional, open_runs AS pending, upstream_deleted AS gone,
  deletion IS NOT NULL AS deleting FROM ${SCHEMA}.threads`

/** How many processes wait for a lock. A lock is given by whoever lets go of it, before their statement is answered. */
const WAITING = `SELECT count(DISTINCT pid)::int AS waiting FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE NOT granted AND datname = current_database()`

const OTHERS = `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid = ANY($1::int[])`

/** What the types of the driver don't tell. */
interface ClientInside {
  readonly processID: number | null
}

type Query = (...args: readonly unknown[]) => unknown

/** Methods of the driver's clients, which are overloaded: promises, callbacks and streams. Only promises are used here. */
interface Driver {
  readonly query: Query
  readonly connect: Query
}

interface Answered {
  readonly rows?: readonly unknown[]
}

/** Makes the engine. @param url of an empty database, as a superuser */
export async function postgresEngine(url: string): Promise<Engine> {
  const settings = settingsOf(new URL(url))
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  const { store } = await openPostgresStore(settings)
  await store.close()
  const { query, connect } = pg.Client.prototype as unknown as Driver
  const real: Driver = { query, connect }
  const ask = async <T extends object>(text: string, values: readonly unknown[] = []): Promise<readonly T[]> =>
    ((await real.query.call(admin, text, [...values])) as pg.QueryResult<T & pg.QueryResultRow>).rows

  return {
    async begin(scheduler, isParking) {
      for (const table of TABLES) await ask(`DELETE FROM ${SCHEMA}.${table}`)
      const driver = instrument(scheduler, isParking, real)
      const end = async (clients: readonly pg.Client[]): Promise<void> => {
        const processes = clients.map((client) => (client as unknown as ClientInside).processID).filter((id) => id !== null)
        if (processes.length > 0) await ask(OTHERS, [processes])
      }
      const rounds = async (): Promise<void> => {
        for (let round = 0; round < 5; round += 1) await new Promise((resolve) => realTimers.setImmediate(resolve))
      }
      return {
        open: async () => (await openPostgresStore(settings)).store,
        rows: () => ask<Row>(ROWS),
        grantees: async () => {
          const rows = await ask<{ grantee: string }>(`SELECT grantee FROM ${SCHEMA}.grants WHERE kind = 'user'`)
          return rows.map(({ grantee }) => grantee)
        },
        async quiet() {
          for (;;) {
            await rounds()
            const { outstanding } = driver
            if (outstanding === 0) return
            // Nobody lets go of a lock before the schedule says so; where there is nothing to say, the server finds the deadlock.
            if (scheduler.choices().length === 0) continue
            const [answer] = await ask<{ waiting: number }>(WAITING)
            await rounds()
            if (answer?.waiting === outstanding && driver.outstanding === outstanding) return
          }
        },
        crash: (gateway) => end(driver.clientsOf(gateway)),
        async close(stores: readonly Store[]) {
          await end(driver.clientsOf(null))
          for (const one of stores) void one.close()
          await rounds()
          driver.restore()
        },
      }
    },
    async remove() {
      await admin.end()
    },
  }
}

/** Makes the driver wait for the schedule. */
function instrument(scheduler: Scheduler, isParking: () => boolean, real: Driver) {
  const clients = new Map<pg.Client, string>()
  const state = {
    /** Of what was sent, or is being connected, how much is not answered. */
    outstanding: 0,
    clientsOf: (gateway: string | null) => [...clients].flatMap(([client, its]) => ((gateway ?? its) === its ? [client] : [])),
    restore: () => {
      Object.assign(pg.Client.prototype, real)
      Reflect.deleteProperty(pg.Pool.prototype, 'query')
    },
  }
  const followed = <T>(work: Promise<T>): Promise<T> => {
    state.outstanding += 1
    return work.finally(() => (state.outstanding -= 1))
  }
  const scheduled = (question: unknown, send: () => Promise<unknown>): Promise<unknown> => {
    const text = typeof question === 'string' ? question : (question as { readonly text: string }).text
    // Heard of is what is asked for: see above.
    if (text.startsWith('LISTEN')) return Promise.reject(new Error('nobody listens'))
    const call = callNow()
    // Neither what sets a session up nor the beginning of a transaction reads or locks anything.
    if (call === undefined || !isParking() || /^(?:SELECT set_config|BEGIN)/.test(text)) return followed(send())
    const label = `${call}: ${/^\W*(\w+)/.exec(text)?.[1] ?? ''}`
    return scheduler.park(
      label,
      () => followed(send()),
      (result) => plain((result as Answered).rows ?? []),
    )
  }
  const query = (pg.Pool.prototype as unknown as { readonly query: Query }).query
  Object.assign(pg.Pool.prototype, {
    query(this: pg.Pool, question: unknown) {
      return scheduled(question, () => query.call(this, question) as Promise<unknown>)
    },
  })
  Object.assign(pg.Client.prototype, {
    query(this: pg.Client, ...args: readonly unknown[]) {
      // With a function it is the pool that asks, in the name of whom it was asked by.
      if (typeof args.at(-1) === 'function') return real.query.apply(this, [...args])
      return scheduled(args[0], () => real.query.apply(this, [...args]) as Promise<unknown>)
    },
    connect(this: pg.Client, ...args: readonly unknown[]) {
      clients.set(this, scheduler.actor().gateway)
      const [callback] = args
      if (typeof callback !== 'function') return followed(real.connect.call(this) as Promise<unknown>)
      const done = Promise.withResolvers<undefined>()
      void followed(done.promise)
      return real.connect.call(this, (...answer: unknown[]) => {
        done.resolve(undefined)
        ;(callback as Query)(...answer)
      })
    },
  })
  return state
}

function settingsOf({ hostname, port, pathname, username, password }: URL): PostgresSettings {
  return {
    host: hostname,
    port: Number(port),
    database: pathname.slice(1),
    user: username,
    password: password === '' ? null : decodeURIComponent(password),
    schema: SCHEMA,
    tls: 'off',
    ca: null,
    pool: 10,
    connectTimeout: 60_000,
    statementTimeout: 60_000,
  }
}
