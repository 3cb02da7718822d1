/** Statements about some threads, named by their keys. */
import { among, sql, type Dialect } from './statement.ts'

export function keyStatements(dialect: Dialect) {
  const these = among(dialect)
  return {
    removeThreads: sql(`DELETE FROM ${dialect.threads} WHERE ${these}`),
    removeGrants: sql(`DELETE FROM ${dialect.grants} WHERE ${these}`),
    /** An operator has decided: what was observed on the threads no longer counts. */
    forget: sql<{ done: 1 }>(`DELETE FROM ${dialect.observations} WHERE ${these} RETURNING 1 AS done`),
  }
}
