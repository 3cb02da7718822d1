/** `threadwarden threads transfer`: gives the threads of one user to another. */
import type { AssignmentStore, RowStore, UserStore } from '../../store/port/administration.ts'
import type { ThreadKey } from '../../store/port/thread.ts'
import { CONFIG, defineCommand, EXIT, flag, jsonFlag, QUIET, SCOPE_FILTER, UsageError, value } from '../command.ts'
import { complain, print, printData } from '../terminal.ts'
import { requireOwner, threadIdOf, userOf } from '../argument-values.ts'
import { counted, threadText } from '../format-thread.ts'
import { withProgress } from '../with-progress.ts'
import { onStore } from '../with-store.ts'

const STEP = 500

export const command = defineCommand({
  usage: ['--from USER --to USER'],
  about: `Gives all threads of a user to another user, including deleted threads, received grants and observations under enforcement:
observe. Grants on the threads stay. The command works in steps: after an interruption, run it again.

New threads of the first user stay theirs. To prevent new threads, revoke the tokens of the user first.`,
  options: {
    config: CONFIG,
    from: value('USER', 'the owner: issuer:subject, also of an issuer that is no longer configured, or anonymous'),
    to: value('USER', 'the new owner'),
    thread: value(
      'ID',
      'only this thread, which must not be deleted; its grants are removed. Without --scope, a thread of upstream',
    ),
    scope: SCOPE_FILTER,
    'dry-run': flag('prints what would be moved, and changes nothing'),
    quiet: QUIET,
    json: jsonFlag('{"moved", "complete"}', '; with --dry-run {"wouldMove"}'),
  },
  exitCodes: { 0: 'done', 1: 'the thread has another owner, interrupted, an invalid configuration or a failing store' },
  examples: [
    'threadwarden threads transfer --from corp:bob --to corp:alice --dry-run',
    'threadwarden threads transfer --from corp:bob --to corp:alice',
  ],

  async run({ from, to, thread, 'dry-run': isDry, ...values }, terminal) {
    if (from === undefined || to === undefined) throw new UsageError('name --from USER and --to USER')
    userOf('--from', from)
    userOf('--to', to)
    if (from === to) throw new UsageError('--from and --to name the same user')
    if (thread !== undefined) threadIdOf(thread)
    return onStore(terminal, values, async ({ store, prepared, scope, keyOf }) => {
      requireOwner('--to', to, prepared.config)
      if (thread !== undefined) {
        const { moved, text } = await moveOne(store, keyOf(thread), from, to, isDry)
        if (values.json && isDry) printData(terminal, { wouldMove: Number(moved) }, 0)
        else if (values.json) printData(terminal, { moved: Number(moved), complete: moved }, 0)
        else if (moved) print(terminal, text)
        if (!moved) complain(terminal, text)
        return moved ? EXIT.fine : EXIT.failure
      }
      if (isDry) {
        const { threads, deleted, rows } = await countRows(store, from, scope)
        if (values.json) printData(terminal, { wouldMove: rows, threads, deleted }, 0)
        else
          print(
            terminal,
            `${counted(rows, 'row')} of ${from} would move to ${to}: ${counted(threads, 'thread')}, ${deleted} of them deleted`,
          )
        return EXIT.fine
      }
      const { done, interrupted } = await withProgress(terminal, values, ({ steps, progress }) => {
        progress.begin('moved', null)
        return steps(() => store.transfer(from, to, STEP, scope))
      })
      if (values.json) printData(terminal, { moved: done, complete: !interrupted }, 0)
      else print(terminal, `${counted(done, 'row')} of ${from} moved to ${to}`)
      if (interrupted) complain(terminal, 'interrupted: run the same command again to continue')
      return interrupted ? EXIT.failure : EXIT.fine
    })
  },
})

/** What a transfer moves: threads, received grants and observations. */
async function countRows(store: Pick<UserStore, 'userData'>, from: string, scope: string | undefined) {
  const data = await store.userData(from)
  const isMoved = (row: ThreadKey): boolean => scope === undefined || row.scope === scope
  const threads = data.threads.filter(isMoved)
  return {
    threads: threads.length,
    deleted: threads.filter(({ deletedAt }) => deletedAt !== null).length,
    rows: threads.length + data.received.filter(isMoved).length + data.observed.filter(isMoved).length,
  }
}

async function moveOne(
  store: AssignmentStore & Pick<RowStore, 'thread'>,
  key: ThreadKey,
  from: string,
  to: string,
  isDry: boolean,
) {
  const named = threadText(key)
  const row = (await store.thread(key))?.row ?? null
  const refusal =
    row?.owner !== from
      ? `${named} does not belong to ${from}: threadwarden threads owner shows its owner`
      : row.deletedAt !== null
        ? `${named} was deleted by ${from}: threadwarden threads assign restores it for another user`
        : null
  if (isDry && refusal === null) return { moved: true, text: `${named} of ${from} would move to ${to}` }
  // The step that changes the owner checks the current owner again.
  const moved = refusal === null && (await store.assign(key, to, Date.now(), from)).outcome === 'assigned'
  if (moved) return { moved, text: `${named} of ${from} moved to ${to}` }
  return { moved, text: refusal ?? `nothing was changed: the owner of ${named} changed in the meantime` }
}
