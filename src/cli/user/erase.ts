/** `threadwarden user erase`: erases a user's data. */
import { CONFIG, defineCommand, EXIT, flag, jsonFlag, QUIET } from '../command.ts'
import { complain, print, printData } from '../terminal.ts'
import { userNamed } from '../argument-values.ts'
import { counted } from '../format-thread.ts'
import { withProgress } from '../with-progress.ts'
import { onStore } from '../with-store.ts'

const STEP = 500

export const command = defineCommand({
  usage: ['USER (--yes | --dry-run)'],
  about: `Erases the data of a user. You cannot undo this. The threads of the user become deleted threads without owner and name, so that no
other user can claim what the upstream still has. Grants that the user gave or received and observations under enforcement: observe
are deleted. The command works in steps: after an interruption, run it again.

Revocations of the user stay: without them, revoked tokens would be valid again. The upstream, the log, the audit log and backups
do not change (docs/how-to/operate/data-requests.md). Revoke the tokens of the user first (threadwarden revoke --user): the store keeps
the data of new requests.`,
  positionals: { USER: 'issuer:subject, also of an issuer that is no longer configured' },
  options: {
    config: CONFIG,
    yes: flag('erases the data; without it the command only shows what it would erase'),
    'dry-run': flag('only shows what the command would erase, with exit code 0'),
    quiet: QUIET,
    json: jsonFlag('{"user", "dryRun", "threads", "granted", "received", "observed", "complete"}'),
  },
  exitCodes: { 0: 'done', 1: 'interrupted, an invalid configuration or a failing store', 2: 'wrong usage, or without --yes' },
  examples: ['threadwarden user erase corp:alice --dry-run', 'threadwarden user erase corp:alice --yes'],

  async run(values, terminal, positionals) {
    const user = userNamed(positionals)
    const dryRun = values['dry-run'] || !values.yes
    return onStore(terminal, values, async ({ store }) => {
      const { threads, granted, received, observed, revocations } = await store.userData(user)
      const held = { threads: threads.length, granted: granted.length, received: received.length, observed: observed.length }
      const total = Object.values(held).reduce((sum, count) => sum + count, 0)
      if (!values.json) {
        const given = `${counted(held.threads, 'thread')}, ${counted(held.granted, 'grant')} given, ${held.received} received`
        print(terminal, `${user}: ${given}, observed on ${counted(held.observed, 'thread')}`)
        const stays = counted(revocations.length, 'revocation')
        print(terminal, `not erased: ${stays}, the log, the audit log, backups, and the data of the upstream`)
      }
      const { interrupted } = dryRun
        ? { interrupted: false }
        : await withProgress(terminal, values, ({ steps, progress }) => {
            progress.begin('erased', total)
            const now = Date.now()
            return steps(() => store.erase(user, now, STEP))
          })
      if (values.json) printData(terminal, { user, dryRun, ...held, complete: !dryRun && !interrupted })
      else if (!dryRun && !interrupted) print(terminal, 'erased')
      if (interrupted) complain(terminal, 'interrupted: run the same command again to continue')
      if (dryRun && !values['dry-run']) complain(terminal, 'nothing was erased: add --yes to erase')
      if (dryRun) return values['dry-run'] ? EXIT.fine : EXIT.usage
      return interrupted ? EXIT.failure : EXIT.fine
    })
  },
})
