/** `threadwarden threads stats`: counts what the store holds. */
import type { StoreStats } from '../../store/port/administration.ts'
import { CONFIG, defineCommand, EXIT, jsonFlag, SCOPE_FILTER } from '../command.ts'
import { columns, printData, printLines } from '../terminal.ts'
import { onStore } from '../with-store.ts'

const LABELS: Readonly<Record<keyof StoreStats, string>> = {
  threads: 'threads that are not deleted',
  owners: 'owners',
  provisional: 'threads with an unconfirmed claim',
  deleted: 'deleted threads, kept so that no user claims them',
  withheld: 'threads that no user may use: owner revoked, or imported as "nobody"',
  grants: 'grants',
  observed: 'threads without an owner that were used under enforcement: observe',
  conflicts: 'of these, used by more than one user',
  revocations: 'revocations',
}

export const command = defineCommand({
  about: `Counts the threads, owners, grants and conflicts in the store. With --scope it does not count revocations, which belong to no
upstream.`,
  options: { config: CONFIG, scope: SCOPE_FILTER, json: jsonFlag('the counts as an object') },
  exitCodes: { 0: 'done', 1: 'an invalid configuration or a failing store' },
  examples: ['threadwarden threads stats'],

  async run(values, terminal) {
    return onStore(terminal, values, async ({ store, scope }) => {
      const { revocations, ...inScope } = await store.stats(scope)
      const counts: Partial<StoreStats> = scope === undefined ? { ...inScope, revocations } : inScope
      if (values.json) printData(terminal, counts)
      else
        printLines(
          terminal,
          columns((Object.keys(counts) as (keyof StoreStats)[]).map((name) => [String(counts[name]), LABELS[name]])),
        )
      return EXIT.fine
    })
  },
})
