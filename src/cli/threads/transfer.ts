/** `threadwarden threads transfer`: gives the threads of one user to another. */
import { inSteps } from '../../tools/import-export/retry.ts'
import type { Store, ThreadKey } from '../../store/port.ts'
import { complain, EXIT, print, printData, readOptions, UsageError, type Command } from '../command.ts'
import { counted, newUserOf, threadIdOf, userOf } from '../argument-values.ts'
import { onStore, peopleIn, STORE_OPTIONS } from '../with-store.ts'
import { keyNamed, SCOPE_OPTION, scopeNamed, threadText } from '../scope-option.ts'
import { withProgress } from '../with-progress.ts'

const OPTIONS = {
  ...STORE_OPTIONS,
  ...SCOPE_OPTION,
  from: { type: 'string' },
  to: { type: 'string' },
  thread: { type: 'string' },
  quiet: { type: 'boolean' },
} as const

const STEP = 500

export const transfer: Command = {
  summary: 'gives the threads of one user to another',
  help: `threadwarden threads transfer --config FILE --from USER --to USER [--thread ID] [--scope KEY] [--quiet] [--json]

Gives all threads of a user to another: deleted ones too, and what was granted to the user and seen of them under
enforcement: observe. Grants on the threads stay. It goes in steps; if it is interrupted, the same command goes on.

  --config FILE  the configuration (YAML or JSON)
  --from USER    whose they are: issuer:subject, of an issuer that may be gone, or anonymous
  --to USER      whose they are to be
  --thread ID    this one alone, which may not be a deleted one; the grants on it go
  --scope KEY    only what is of the upstream with this key under upstreams or agents, '' for upstream; by default all,
                 and with --thread that of upstream
  --quiet        says nothing of the progress
  --json         prints {"moved", "complete"} on stdout

What the user begins meanwhile stays theirs: revoke their tokens first, if they are to have nothing.

Exit codes: 0 done, 1 the thread is not theirs, interrupted, an invalid configuration or a failing store, 2 wrong usage.`,

  async run(args) {
    const options = readOptions(args, OPTIONS)
    const { from, to, thread } = options
    if (from === undefined || to === undefined) throw new UsageError('name --from USER and --to USER')
    userOf('--from', from)
    userOf('--to', to)
    if (from === to) throw new UsageError('--from and --to name one user')
    if (thread !== undefined) threadIdOf(thread)
    return onStore(options, async (opened) => {
      const { store, prepared } = opened
      newUserOf('--to', to, peopleIn(prepared.config))
      if (thread !== undefined) {
        const key = await keyNamed(thread, options.scope, opened)
        return moveOne(store, key, from, to, options.json === true)
      }
      const scope = await scopeNamed(options.scope, opened)
      const { done, interrupted } = await withProgress(options.quiet === true, ({ retry, signal, progress }) => {
        progress.begin('moved', null)
        return inSteps(
          () => store.transfer(from, to, STEP, scope),
          retry,
          signal,
          (moved) => progress.at(moved),
        )
      })
      if (options.json === true) printData({ moved: done, complete: !interrupted }, 0)
      else print(`${counted(done, 'row')} of ${from} moved to ${to}`)
      if (interrupted) complain('interrupted: the same command goes on')
      return interrupted ? EXIT.failure : EXIT.fine
    })
  },
}

async function moveOne(store: Store, key: ThreadKey, from: string, to: string, json: boolean): Promise<number> {
  const named = threadText(key)
  const row = (await store.thread(key))?.row ?? null
  const refusal =
    row?.owner !== from
      ? `${named} is not a thread of ${from}: threads owner says whose it is`
      : row.deletedAt !== null
        ? `${named} was deleted by ${from}: threads assign makes it a live thread of another user's`
        : null
  // The step that changes the owner checks the current owner again.
  const outcome = refusal === null ? (await store.assign(key, to, Date.now(), from)).outcome : 'changed'
  const moved = outcome === 'assigned' ? 1 : 0
  if (json) printData({ moved, complete: moved === 1 }, 0)
  else if (moved === 1) print(`${named} of ${from} moved to ${to}`)
  if (moved === 0) complain(refusal ?? `nothing was changed: ${named} has changed hands meanwhile`)
  return moved === 1 ? EXIT.fine : EXIT.failure
}
