/** The statements that this process sends to a database, as they are sent: to SQLite by better-sqlite3, to PostgreSQL by pg. */
import Database from 'better-sqlite3'
import pg from 'pg'

/** One that was sent. */
export interface Sent {
  /** Of a statement that PostgreSQL prepares and plans once for all values; null for one that it plans each time. */
  readonly name: string | null
  readonly text: string
  /** By position, or by name in one object. */
  readonly values: readonly unknown[]
}

/** Gives what is sent while something is done, by whomever in this process: the first first. */
export async function sentBy(work: () => Promise<unknown>): Promise<readonly Sent[]> {
  const sent: Sent[] = []
  const undo = [recordSqlite(sent), recordPostgres(sent)]
  try {
    await work()
  } finally {
    for (const step of undo) step()
  }
  return sent
}

/** Without what begins and ends transactions, and without the question whether a table has any row: the first one answers it. */
export function onRows(sent: readonly Sent[]): readonly Sent[] {
  return sent.filter(({ text }) => /^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/i.test(text) && !ANY_ROW.test(text))
}

const ANY_ROW = /^SELECT (?:1 AS there FROM \w+ LIMIT 1|EXISTS \(SELECT FROM \S+\) AS there)$/

function recordSqlite(sent: Sent[]): () => void {
  const database = new Database(':memory:')
  const prototype: object = Reflect.getPrototypeOf(database.prepare('SELECT 1'))!
  database.close()
  const undo = (['get', 'all', 'run'] as const).map((method) => {
    const original = Reflect.get(prototype, method) as (...values: unknown[]) => unknown
    Reflect.set(prototype, method, function (this: Database.Statement, ...values: unknown[]) {
      sent.push({ name: null, text: this.source, values })
      return original.apply(this, values)
    })
    return () => Reflect.set(prototype, method, original)
  })
  return () => undo.forEach((step) => step())
}

function recordPostgres(sent: Sent[]): () => void {
  const original = Reflect.get(pg.Client.prototype, 'query') as (...input: unknown[]) => unknown
  Reflect.set(pg.Client.prototype, 'query', function (this: pg.Client, ...input: unknown[]) {
    const [config, values] = input as [string | pg.QueryConfig, unknown]
    if (typeof config === 'string') sent.push({ name: null, text: config, values: Array.isArray(values) ? values : [] })
    else sent.push({ name: config.name ?? null, text: config.text, values: config.values ?? [] })
    return original.apply(this, input)
  })
  return () => Reflect.set(pg.Client.prototype, 'query', original)
}
