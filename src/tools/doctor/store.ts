/** Checks the ownership store: can the gateway open and write it, and is it on durable storage? The check changes nothing. */
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { storeOf } from '../../config/store-place.ts'
import { lostWith } from '../../store/durability.ts'
import { inspectSqlite, lookUpInSqlite } from '../../store/inspect.ts'
import { EMPTY_LOOKUP } from '../../store/port/lookup.ts'
import type { PostgresInspection } from '../../store/postgres/inspect.ts'
import { notChecked, ok, problem, warning, type Result } from './finding.ts'
import { scopesIn } from '../../config/mounts.ts'
import type { Check, KnownTable, Results, Subject } from './subject.ts'

/** The check blocks the whole process while it waits for another process's lock. */
const BUSY_TIMEOUT_MS = 1000

export const STORE_CHECKS: readonly Check[] = [
  { name: 'store.file', run: (subject) => ofFile(subject, (file) => look(file, subject.known.table)) },
  { name: 'store.durable', run: (subject) => ofFile(subject, (file) => durable(file, subject.machine.mounts)) },
  { name: 'store.server', run: ofServer },
  { name: 'store.scopes', run: leftBehind },
]

function ofFile({ config }: Subject, check: (file: string) => Result): Results {
  const store = storeOf(config.ownership)
  return store.kind === 'sqlite' ? check(store.file) : []
}

async function ofServer({ config, wishes, known: { table } }: Subject): Promise<Results> {
  const store = storeOf(config.ownership)
  if (store.kind === 'sqlite') return []
  const { settings } = store
  const [connectTimeout, statementTimeout] = [settings.connectTimeout, settings.statementTimeout].map((time) =>
    Math.min(time, wishes.timeout),
  ) as [number, number]
  const { inspectPostgres, lookUpInPostgres } = await import('../../store/postgres/inspect.ts')
  const seen = await inspectPostgres({ ...settings, connectTimeout, statementTimeout })
  if (seen.outcome === 'missing') markEmpty(table)
  if (seen.outcome === 'usable') {
    table.scopes = seen.scopes
    table.lookUp = () => Promise.resolve(lookUpInPostgres({ ...settings, connectTimeout, statementTimeout }))
  }
  return [serverResult(seen, settings.tls === 'verify' ? 'over TLS' : 'without TLS')]
}

function serverResult(seen: PostgresInspection, way: string): Result {
  switch (seen.outcome) {
    case 'unusable':
      return problem(seen.message, seen.hint)
    case 'missing':
      return ok(
        `${seen.place} answers ${way} and has no tables yet: the gateway creates them when it starts. If it has run before, this is another database or schema`,
      )
    case 'usable': {
      const owners = ownersIn(seen.scopes)
      const behind = seen.behind === 0 ? '' : '; the next start migrates its schema'
      return ok(`${seen.place} can be read and written ${way}; ${owners}${behind}`)
    }
  }
}

function look(file: string, table: KnownTable): Result {
  const seen = inspectSqlite(file, BUSY_TIMEOUT_MS)
  switch (seen.outcome) {
    case 'unusable':
      if (!existsSync(file)) markEmpty(table)
      return problem(seen.message, `${seen.hint}; run the doctor as the user that runs the gateway`)
    case 'missing':
      markEmpty(table)
      return ok(
        `${file} does not exist yet: the gateway creates it when it starts. If it has run before, the path is wrong, a volume is missing or the file was removed: do not start or restart it, but restore the file`,
      )
    case 'usable':
      table.scopes = seen.scopes
      table.lookUp = () => Promise.resolve(seen.schema === 0 ? EMPTY_LOOKUP : lookUpInSqlite(file, BUSY_TIMEOUT_MS))
      return ok(`${file} can be opened and written; ${ownersIn(seen.scopes)}`)
  }
}

function markEmpty(table: KnownTable): void {
  table.scopes = []
  table.lookUp = () => Promise.resolve(EMPTY_LOOKUP)
}

function ownersIn(scopes: readonly string[]): string {
  return scopes.length === 0 ? 'no thread has an owner yet' : 'it has owners of threads'
}

/** If an upstream gets another key, its threads are unowned under the new key: the operator must see that. */
function leftBehind({ config, known: { table } }: Subject): Results {
  const configured = scopesIn(config)
  const left = (table.scopes ?? []).filter((scope) => !configured.includes(scope))
  if (left.length === 0) return []
  const named = left.map((scope) => (scope === '' ? 'upstream' : scope))
  return warning(
    `the ownership table has threads of upstreams that the configuration does not have: ${named.join(', ')}`,
    'if a key was renamed, give the upstream its old key; if the upstream was removed, delete the rows with threadwarden threads prune --scope KEY',
  )
}

function durable(file: string, mounts: string): Result {
  if (mounts === '') return notChecked('this machine does not show its mounts')
  if (!existsSync(dirname(file))) return notChecked(`the folder of ${file} does not exist yet`)
  const fate = lostWith(file, mounts)
  if (fate === null) return ok('the store is on durable storage, as far as its mount shows')
  return problem(
    `${file} is lost with ${fate}: then no thread has an owner`,
    'put it on a volume, and write its path to ownership.store',
  )
}
