/** Measures the operations on all tables side by side, and looks at the statements that they send. */
import type { Progress } from '../../../src/cli/with-progress.ts'
import { onRows, sentBy } from '../../support/statements.ts'
import { measure, ROUNDS, type Subject } from '../rounds.ts'
import type { Operation, Workbench } from './operations.ts'
import type { BuiltTable, MeasuredOperation } from './result.ts'
import type { Table } from './table.ts'

/** A table with everything that works on it. */
export interface Bench extends Workbench {
  readonly built: BuiltTable
}

interface Place {
  readonly bench: Bench
  readonly operation: Operation
}

/** Measures. An operation is measured on one table after the other before the next operation is. */
export async function measureOn(
  benches: readonly Bench[],
  { seconds, progress }: { readonly seconds: number; readonly progress: Progress },
): Promise<readonly MeasuredOperation[]> {
  const ids = new Set(benches.flatMap(({ operations }) => operations.map(({ id }) => id)))
  const places = [...ids].flatMap((id) =>
    benches.flatMap((bench): Place[] =>
      bench.operations.filter((operation) => operation.id === id).map((operation) => ({ bench, operation })),
    ),
  )
  const subjects = places.map(({ bench, operation }): Subject => ({ ...operation, otherCpu: () => bench.table.serverCpu() }))
  progress.begin('rounds', ROUNDS + 1)
  const measured = await measure(subjects, { seconds, tell: (round) => progress.at(round) })
  const results: MeasuredOperation[] = []
  for (const [at, { bench, operation }] of places.entries()) {
    const { id, title } = operation
    const { store, size } = bench.built
    const looks = await lookAt(bench.table, operation)
    results.push({ operation: id, title, store, size, ...measured[at]!, ...looks })
  }
  return results
}

/** How many statements an operation sends, and what they read. */
export async function lookAt(table: Table, operation: Operation): Promise<Pick<MeasuredOperation, 'statements' | 'reads'>> {
  await operation.prepare?.()
  // Without what listens for changes: it asks for their number all the time, whatever else goes on.
  const sent = (await sentBy(operation.run)).filter(({ text }) => !/^SELECT value FROM \S+versions /.test(text))
  const accesses = []
  for (const statement of onRows(sent)) accesses.push(...(await table.accesses(statement)))
  const reads = accesses.map(({ table, index }) => `${table} ${index === null ? 'as a whole' : `by ${index}`}`)
  return { statements: sent.length, reads: [...new Set(reads)].sort() }
}
