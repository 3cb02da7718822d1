/** Prunes rows of the SQLite file. */
import type { PruneRule, PruneStore } from '../port/administration.ts'
import type { ThreadKey } from '../port/thread.ts'
import { keyStatements } from '../sql/keys.ts'
import { needsScopes, prunableBy, pruneStatements } from '../sql/prune.ts'
import type { Connection } from './connection.ts'
import { keysOf, SQLITE } from './dialect.ts'
import type { SqliteFile } from './file.ts'
import type { SqliteInvalidations } from './invalidations.ts'

const PRUNE = pruneStatements(SQLITE)
const KEYS = keyStatements(SQLITE)

export function pruningIn(file: SqliteFile, invalidations: SqliteInvalidations): PruneStore {
  return {
    prune: (rule, limit) =>
      invalidations.write((database) => {
        const keys = found(database, rule, limit)
        const values = keysOf(keys)
        database.run(KEYS.removeThreads, values)
        database.run(KEYS.removeGrants, values)
        database.all(KEYS.forget, values)
        return { result: keys.length, changed: keys.length > 0 && rule.unusedSince !== undefined ? 'many' : 'nothing' }
      }),
    prunable: (rule) =>
      file.read((database) => {
        const prunable = prunableBy(rule)
        if (prunable === null) return 0
        const { rows, before } = prunable
        const counts = scopesOf(database, rule).map(
          (scope) => database.get(PRUNE.count(rows, scope), { before, scope: scope ?? null })?.count ?? 0,
        )
        return counts.reduce((sum, count) => sum + count, 0)
      }),
  }
}

function scopesOf(database: Connection, rule: PruneRule): readonly (string | undefined)[] {
  return needsScopes(rule) ? database.all(PRUNE.scopes).map(({ scope }) => scope) : [rule.scope]
}

function found(database: Connection, rule: PruneRule, limit: number): readonly ThreadKey[] {
  const prunable = prunableBy(rule)
  if (prunable === null) return []
  const { rows, before } = prunable
  const keys: ThreadKey[] = []
  for (const scope of scopesOf(database, rule)) {
    const values = { before, scope: scope ?? null, limit: limit - keys.length }
    for (const key of database.all(PRUNE.page(rows, scope), values)) keys.push(key)
  }
  return keys
}
