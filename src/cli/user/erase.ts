/** `threadwarden user erase`: erases a user's data. */
import { inSteps } from '../../tools/import-export/retry.ts'
import { complain, EXIT, print, printData, readArguments, type Command } from '../command.ts'
import { counted } from '../argument-values.ts'
import { onStore, STORE_OPTIONS } from '../with-store.ts'
import { withProgress } from '../with-progress.ts'
import { userNamed } from './export.ts'

const OPTIONS = {
  ...STORE_OPTIONS,
  yes: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  quiet: { type: 'boolean' },
} as const

const STEP = 500

export const erase: Command = {
  summary: 'forgets a user',
  help: `threadwarden user erase --config FILE USER (--yes | --dry-run) [--quiet] [--json]

Forgets a user. Their threads become deleted threads of nobody's, without name and owner, so that nobody can claim what the
upstream still holds of them; grants that they gave or were given go, and so does what was seen of them under
enforcement: observe. It goes in steps; if it is interrupted, the same command goes on. It cannot be undone.

  --config FILE  the configuration (YAML or JSON)
  USER           issuer:subject, of an issuer that may be gone
  --yes          does it; without it the command only says what it would do
  --dry-run      the same as leaving --yes out, and not wrong usage
  --quiet        says nothing of the progress
  --json         prints {"user", "dryRun", "threads", "granted", "received", "observed", "complete"} on stdout

What stays: revocations of the user, or their tokens would be good again; the log, the audit and backups, which end by their
own rules; what a database keeps of deleted rows until it tidies up (docs/store.md); and what the upstream holds. Revoke the
user's tokens first (threadwarden revoke --user), or what they do meanwhile is noted anew.

Exit codes: 0 done, 1 interrupted, an invalid configuration or a failing store, 2 wrong usage or without --yes.`,

  async run(args) {
    const { values, positionals } = readArguments(args, OPTIONS)
    const user = userNamed(positionals)
    const dryRun = values['dry-run'] === true || values.yes !== true
    return onStore(values, async ({ store }) => {
      const { threads, granted, received, observed, revocations } = await store.userData(user)
      const held = { threads: threads.length, granted: granted.length, received: received.length, observed: observed.length }
      const total = Object.values(held).reduce((sum, count) => sum + count, 0)
      if (values.json !== true) {
        print(
          `${user}: ${counted(held.threads, 'thread')}, ${counted(held.granted, 'grant')} given, ${held.received} received, seen on ${counted(held.observed, 'thread')}`,
        )
        print(
          `what stays: ${counted(revocations.length, 'revocation')}, the log, the audit and backups, and what the upstream holds`,
        )
      }
      const { interrupted } = dryRun
        ? { interrupted: false }
        : await withProgress(values.quiet === true, ({ retry, signal, progress }) => {
            progress.begin('erased', total)
            const now = Date.now()
            return inSteps(
              () => store.erase(user, now, STEP),
              retry,
              signal,
              (done) => progress.at(done),
            )
          })
      if (values.json === true) printData({ user, dryRun, ...held, complete: !dryRun && !interrupted })
      else if (!dryRun && !interrupted) print('erased')
      if (interrupted) complain('interrupted: the same command goes on')
      if (dryRun && values['dry-run'] !== true) complain('nothing was done: --yes does it')
      if (dryRun) return values['dry-run'] === true ? EXIT.fine : EXIT.usage
      return interrupted ? EXIT.failure : EXIT.fine
    })
  },
}
