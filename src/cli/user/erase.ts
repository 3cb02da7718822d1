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
  about: `Erases a user, which cannot be undone. Their threads become deleted threads without owner and name, so that no user can claim
what the upstream still has of them. Grants that the user gave or received are deleted, and observations under enforcement:
observe. The command works in steps. After an interruption, run the same command again.

Revocations of the user stay, or revoked tokens would be valid again. The log, the audit log, backups and the upstream are not
changed (docs/how-to/operate/data-requests.md). Revoke the user's tokens first (threadwarden revoke --user): new requests of the user are stored.`,
  positionals: { USER: 'issuer:subject, also of an issuer that is no longer configured' },
  options: {
    config: CONFIG,
    yes: flag('erases; without it the command only shows what it would erase'),
    'dry-run': flag('only shows what would be erased, with exit code 0'),
    quiet: QUIET,
    json: jsonFlag('{"user", "dryRun", "threads", "granted", "received", "observed", "complete"}'),
  },
  exitCodes: ['done', 'interrupted, an invalid configuration or a failing store', 'wrong usage or without --yes'],

  async run(values, terminal, positionals) {
    const user = userNamed(positionals)
    const dryRun = values['dry-run'] || !values.yes
    return onStore(terminal, values, async ({ store }) => {
      const { threads, granted, received, observed, revocations } = await store.userData(user)
      const held = { threads: threads.length, granted: granted.length, received: received.length, observed: observed.length }
      const total = Object.values(held).reduce((sum, count) => sum + count, 0)
      if (!values.json) {
        const given = `${counted(held.threads, 'thread')}, ${counted(held.granted, 'grant')} given, ${held.received} received`
        print(terminal, `${user}: ${given}, seen on ${counted(held.observed, 'thread')}`)
        const stays = counted(revocations.length, 'revocation')
        print(terminal, `what stays: ${stays}, the log, the audit and backups, and what the upstream holds`)
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
      if (interrupted) complain(terminal, 'interrupted: the same command goes on')
      if (dryRun && !values['dry-run']) complain(terminal, 'nothing was done: --yes does it')
      if (dryRun) return values['dry-run'] ? EXIT.fine : EXIT.usage
      return interrupted ? EXIT.failure : EXIT.fine
    })
  },
})
