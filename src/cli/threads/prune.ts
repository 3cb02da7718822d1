/** `threadwarden threads prune`: deletes rows that are no longer needed. */
import { inSteps } from '../../tools/import-export/retry.ts'
import { mountsOf } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import type { UnknownThread } from '../../core/decide/decide.ts'
import type { PruneRule, Store } from '../../store/port.ts'
import { complain, EXIT, print, printData, readOptions, UsageError, type Command } from '../command.ts'
import { counted, pastTimeOf } from '../argument-values.ts'
import { onStore, STORE_OPTIONS } from '../with-store.ts'
import { SCOPE_OPTION, scopeNamed } from '../scope-option.ts'
import { withProgress } from '../with-progress.ts'

const OPTIONS = {
  ...STORE_OPTIONS,
  ...SCOPE_OPTION,
  'deleted-before': { type: 'string' },
  'unused-since': { type: 'string' },
  'dry-run': { type: 'boolean' },
  quiet: { type: 'boolean' },
} as const

const STEP = 500

export const prune: Command = {
  summary: 'throws away rows of deleted or unused threads',
  help: `threadwarden threads prune --config FILE [--deleted-before WHEN] [--unused-since WHEN] [--scope KEY]
                         [--dry-run] [--quiet] [--json]

Throws rows away. The gateway knows nothing of these threads any more: with unknownThread: claim an id may then be claimed
by whoever comes first, and with what the upstream still holds of the thread. Before you throw away what is not deleted, be
sure that the upstream has forgotten it, too.

  --config FILE          the configuration (YAML or JSON)
  --deleted-before WHEN  deleted threads, deleted before then, of which the upstream confirmed that they are gone
  --unused-since WHEN    threads that are not deleted and that nobody used since
  --scope KEY            only those of the upstream with this key under upstreams or agents, '' for upstream; by default all.
                         It may be one that the configuration doesn't have any more
  --dry-run              says how many, and throws none away
  --quiet                says nothing of the progress
  --json                 prints {"dryRun", "pruned", "complete"} on stdout

WHEN is a time with its zone, 2026-01-31T12:00:00Z, or how long ago that was: 90d, 12h (s, m, h, d, w).

Exit codes: 0 done, 1 interrupted, an invalid configuration or a failing store, 2 wrong usage.`,

  async run(args) {
    const options = readOptions(args, OPTIONS)
    const asked = rulesIn(options['deleted-before'], options['unused-since'], Date.now())
    const dryRun = options['dry-run'] === true
    return onStore(options, async (opened) => {
      const { store, prepared } = opened
      const scope = await scopeNamed(options.scope, opened)
      const rules = scope === undefined ? asked : asked.map((rule) => ({ ...rule, scope }))
      for (const warning of warnings(prepared.config, rules, scope)) complain(`warning: ${warning}`)
      const total = await prunable(store, rules)
      const { done, interrupted } = dryRun
        ? { done: total, interrupted: false }
        : await throwAway(store, rules, total, options.quiet === true)
      if (options.json === true) printData({ dryRun, pruned: done, complete: !interrupted }, 0)
      else print(`${counted(done, 'row')} ${dryRun ? 'would be' : done === 1 ? 'was' : 'were'} thrown away`)
      if (interrupted) complain('interrupted: the same command goes on')
      return interrupted ? EXIT.failure : EXIT.fine
    })
  },
}

/** One rule for deleted rows and one for live rows. */
function rulesIn(deletedBefore: string | undefined, unusedSince: string | undefined, now: number): readonly PruneRule[] {
  if (deletedBefore === undefined && unusedSince === undefined) throw new UsageError('name --deleted-before or --unused-since')
  return [
    ...(deletedBefore === undefined ? [] : [{ deletedBefore: pastTimeOf('--deleted-before', deletedBefore, now) }]),
    ...(unusedSince === undefined ? [] : [{ unusedSince: pastTimeOf('--unused-since', unusedSince, now) }]),
  ]
}

/** Warns what the deletion of live rows means, which depends on each upstream's configuration. */
function warnings(config: Config, rules: readonly PruneRule[], scope: string | undefined): readonly string[] {
  if (!rules.some(({ unusedSince }) => unusedSince !== undefined)) return []
  const mounts = mountsOf(config).filter((mount) => scope === undefined || mount.scope === scope)
  const said = Map.groupBy(mounts, ({ unknownThread }) => unknownThread)
  return [...said].map(([unknownThread, those]) => {
    const whose = said.size === 1 ? '' : ` for ${those.map(({ place }) => place.join('.')).join(', ')}`
    return `unknownThread is ${unknownThread}${whose}: ${MEANING[unknownThread]}`
  })
}

const MEANING: Readonly<Record<UnknownThread, string>> = {
  claim: 'an id that is thrown away belongs to whoever comes first, with what the upstream still holds of it',
  verify: 'nobody can use these threads any more as long as the upstream has a history of them',
  deny: 'nobody can use these threads any more',
}

async function prunable(store: Store, rules: readonly PruneRule[]): Promise<number> {
  let total = 0
  for (const rule of rules) total += await store.prunable(rule)
  return total
}

function throwAway(
  store: Store,
  rules: readonly PruneRule[],
  total: number,
  quiet: boolean,
): Promise<{ readonly done: number; readonly interrupted: boolean }> {
  return withProgress(quiet, async ({ retry, signal, progress }) => {
    progress.begin('thrown away', total)
    let before = 0
    for (const rule of rules) {
      const at = before
      const steps = await inSteps(
        () => store.prune(rule, STEP),
        retry,
        signal,
        (done) => progress.at(at + done),
      )
      before += steps.done
      if (steps.interrupted) return { done: before, interrupted: true }
    }
    return { done: before, interrupted: false }
  })
}
