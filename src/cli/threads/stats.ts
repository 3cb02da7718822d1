/** `threadwarden threads stats`: counts what the store holds. */
import { EXIT, printData, printLines, readOptions, type Command } from '../command.ts'
import { onStore, STORE_OPTIONS } from '../with-store.ts'
import { SCOPE_OPTION, scopeNamed } from '../scope-option.ts'
import type { StoreStats } from '../../store/port.ts'
import { columns } from '../terminal.ts'

const WORDS: Readonly<Record<keyof StoreStats, string>> = {
  threads: 'threads that are not deleted',
  owners: 'owners',
  provisional: 'threads of which no run is confirmed yet',
  deleted: 'deleted threads, kept so that nobody claims them',
  withheld: 'threads whose owner was taken away',
  grants: 'grants',
  observed: 'threads seen under enforcement: observe that have no owner',
  conflicts: 'of these, run by more than one user',
  revocations: 'revocations',
}

export const stats: Command = {
  summary: 'counts threads, owners, grants and conflicts',
  help: `threadwarden threads stats --config FILE [--scope KEY] [--json]

Counts what is in the store.

  --config FILE  the configuration (YAML or JSON)
  --scope KEY    only what is of the upstream with this key under upstreams or agents, '' for upstream; by default all.
                 Revocations are of none, and not counted then
  --json         prints the counts as an object on stdout

Exit codes: 0 done, 1 an invalid configuration or a failing store, 2 wrong usage.`,

  async run(args) {
    const options = readOptions(args, { ...STORE_OPTIONS, ...SCOPE_OPTION })
    return onStore(options, async (opened) => {
      const scope = await scopeNamed(options.scope, opened)
      const { revocations, ...inScope } = await opened.store.stats(scope)
      const counts: Partial<StoreStats> = scope === undefined ? { ...inScope, revocations } : inScope
      if (options.json === true) printData(counts)
      else printLines(columns((Object.keys(counts) as (keyof StoreStats)[]).map((name) => [String(counts[name]), WORDS[name]])))
      return EXIT.fine
    })
  },
}
