/** How a database goes about a statement: which tables it reads, by which index, and how many rows of them. */
import Database from 'better-sqlite3'
import type pg from 'pg'
import type { Sent } from './statements.ts'

/** Where a plan reads a table of the store. */
export interface Access {
  readonly table: string
  /** Null where all of the table is read. */
  readonly index: string | null
  /** How many rows were looked at, those included that were left aside; null where the database does not tell. */
  readonly rows: number | null
}

/** What SQLite says of a statement, which it does not carry out. */
export function sqliteAccesses(file: string, { text, values }: Sent): readonly Access[] {
  const database = new Database(file, { readonly: true })
  try {
    const tables = database.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all()
    const plan = database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`).all(...values)
    return plan.flatMap(({ detail }) => {
      const [, how, table = ''] = /^(SCAN|SEARCH) (\w+)/.exec(detail) ?? []
      if (!tables.includes(table)) return []
      const index =
        /USING (?:COVERING )?INDEX (\w+)|USING (?:INTEGER )?(PRIMARY KEY)/.exec(detail)?.slice(1).find(Boolean) ?? null
      // A scan along an index reads all of it, too.
      return [{ table, index: how === 'SEARCH' ? index : null, rows: null }]
    })
  } finally {
    database.close()
  }
}

/** A node of a plan, as EXPLAIN (FORMAT JSON) has it (PostgreSQL, "EXPLAIN"). */
interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Actual Rows'?: number
  readonly 'Actual Loops'?: number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly PlanNode[]
}

/** Makes a connection tell how it goes about each statement (PostgreSQL, "auto_explain"). @param client of a superuser */
export async function explainOn(client: pg.Client): Promise<(sent: Sent) => Promise<readonly Access[]>> {
  let plans: PlanNode[] = []
  client.on('notice', ({ message = '' }) => {
    const plan = /^duration: .*? plan:\s*(\{.*)$/s.exec(message)?.[1]
    if (plan !== undefined) plans.push((JSON.parse(plan) as { readonly Plan: PlanNode }).Plan)
  })
  await client.query(`LOAD 'auto_explain'; SET jit = off; SET client_min_messages = log; SET auto_explain.log_analyze = on;
    SET auto_explain.log_format = json`)
  // What is planned once is planned for these very values the first times, and then for any.
  return async ({ name, text, values }) => {
    plans = []
    for (const mode of name === null ? ['custom'] : ['custom', 'generic']) {
      await client.query(`SET plan_cache_mode = force_${mode}_plan; BEGIN; SET LOCAL auto_explain.log_min_duration = 0`)
      await client.query({ ...(name === null ? {} : { name }), text, values: [...values] })
      await client.query('ROLLBACK')
    }
    return plans.flatMap(accessesIn)
  }
}

function accessesIn(node: PlanNode): readonly Access[] {
  const below = (node.Plans ?? []).flatMap(accessesIn)
  const { 'Relation Name': table, 'Index Name': index } = node
  const looked = (node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  const rows = looked * (node['Actual Loops'] ?? 1)
  // A bitmap's heap scan reads what the index scans below it have found.
  if (node['Node Type'] === 'Bitmap Heap Scan') return below.map((access) => ({ ...access, table: table ?? access.table }))
  if (table === undefined && index === undefined) return below
  // Writing is no access: its rows were found by the nodes below.
  if (node['Node Type'] === 'ModifyTable') return below
  return [{ table: table ?? '', index: index ?? null, rows }, ...below]
}
