/** The PostgreSQL server that is measured: the one named by THREADWARDEN_TEST_POSTGRES, or one from the binaries that npm brings. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { startServer } from '../../support/postgres-server.ts'

/** A server. */
export interface BenchServer {
  /** Makes an empty database. @returns its URL, with a superuser */
  makeDatabase(): Promise<string>
  /** What of its settings matters to what it takes. */
  readonly settings: string
  /** Ends it, or takes the databases away that were made there. */
  remove(): Promise<void>
}

/** As one sets a small server up; everything else is as PostgreSQL has it: what is confirmed is on the disk. */
const SETTINGS = { shared_buffers: '1GB', max_wal_size: '8GB', effective_cache_size: '8GB', random_page_cost: 1.1 }

/**
 * Starts it.
 * @param keep true to leave the databases on a server that was there before
 */
export async function startBenchServer(keep: boolean): Promise<BenchServer> {
  const given = process.env['THREADWARDEN_TEST_POSTGRES']
  const own = given === undefined ? await startServer({ settings: SETTINGS }) : null
  const url = given ?? `postgres://postgres@127.0.0.1:${own?.port}/postgres`
  const made: string[] = []
  return {
    async makeDatabase() {
      const name = `threadwarden_bench_${randomBytes(4).toString('hex')}`
      await ask(url, `CREATE DATABASE ${name}`)
      made.push(name)
      return Object.assign(new URL(url), { pathname: `/${name}` }).href
    },
    settings: await settingsOf(url),
    async remove() {
      if (own !== null) return own.remove()
      if (!keep) for (const name of made) await ask(url, `DROP DATABASE ${name} WITH (FORCE)`)
    },
  }
}

async function settingsOf(url: string): Promise<string> {
  const names = [...Object.keys(SETTINGS), 'fsync', 'synchronous_commit'].map((name) => `'${name}'`).join()
  const rows = await ask(
    url,
    `SELECT format('%s = %s', name, current_setting(name)) AS text FROM pg_settings WHERE name IN (${names})`,
  )
  return rows.map(({ text }) => text).join(', ')
}

async function ask(url: string, text: string): Promise<readonly { readonly text: string }[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<{ text: string }>(text)).rows
  } finally {
    await client.end()
  }
}
