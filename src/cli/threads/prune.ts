/** `threadwarden threads prune`: deletes rows that are no longer needed. */
import { mountsOf } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import type { UnknownThread } from '../../core/decide/decide.ts'
import type { PruneRule } from '../../store/port/administration.ts'
import { CONFIG, defineCommand, EXIT, flag, jsonFlag, QUIET, SCOPE_FILTER, UsageError, value } from '../command.ts'
import { complain, print, printData } from '../terminal.ts'
import { pastTimeOf } from '../argument-values.ts'
import { counted } from '../format-thread.ts'
import { withProgress } from '../with-progress.ts'
import { onStore } from '../with-store.ts'

const STEP = 500

export const command = defineCommand({
  about: `Deletes rows of the ownership table. The gateway then no longer knows these threads. With unknownThread: claim, the first user who
runs such a thread owns it, with all messages that the upstream still has. Before you delete rows of live threads, make sure that
the upstream has deleted these threads.

WHEN is a time with its zone (2026-01-31T12:00:00Z) or an age (90d, 12h; units s, m, h, d, w).`,
  options: {
    config: CONFIG,
    'deleted-before': value('WHEN', 'threads that their owner deleted before WHEN, if the upstream confirmed the deletion'),
    'unused-since': value('WHEN', 'live threads that were not used since WHEN'),
    scope: SCOPE_FILTER,
    'dry-run': flag('only counts, and deletes nothing'),
    quiet: QUIET,
    json: jsonFlag('{"dryRun", "pruned", "complete"}'),
  },
  exitCodes: { 0: 'done', 1: 'interrupted, an invalid configuration or a failing store' },
  examples: ['threadwarden threads prune --deleted-before 90d --dry-run'],

  async run(values, terminal) {
    const asked = rulesIn(values['deleted-before'], values['unused-since'], Date.now())
    const dryRun = values['dry-run']
    return onStore(terminal, values, async ({ store, prepared, scope }) => {
      const rules = scope === undefined ? asked : asked.map((rule) => ({ ...rule, scope }))
      for (const warning of warnings(prepared.config, rules, scope)) complain(terminal, `warning: ${warning}`)
      let total = 0
      for (const rule of rules) total += await store.prunable(rule)
      const { done, interrupted } = dryRun
        ? { done: total, interrupted: false }
        : await withProgress(terminal, values, async ({ steps, progress }) => {
            progress.begin('deleted', total)
            let before = 0
            for (const rule of rules) {
              const pruned = await steps(() => store.prune(rule, STEP), before)
              before += pruned.done
              if (pruned.interrupted) return { done: before, interrupted: true }
            }
            return { done: before, interrupted: false }
          })
      if (values.json) printData(terminal, { dryRun, pruned: done, complete: !interrupted }, 0)
      else print(terminal, `${counted(done, 'row')} ${dryRun ? 'would be' : done === 1 ? 'was' : 'were'} deleted`)
      if (interrupted) complain(terminal, 'interrupted: run the same command again to continue')
      return interrupted ? EXIT.failure : EXIT.fine
    })
  },
})

/** One rule for deleted rows and one for live rows. */
function rulesIn(deletedBefore: string | undefined, unusedSince: string | undefined, now: number): readonly PruneRule[] {
  if (deletedBefore === undefined && unusedSince === undefined)
    throw new UsageError('name --deleted-before or --unused-since, or both')
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
  claim: 'the first user who runs a deleted id owns it, with all messages that the upstream still has',
  verify: 'no user can use these threads while the upstream has a history of them',
  deny: 'no user can use these threads any more',
}
