/** `threadwarden grants remove`: takes a grant back. */
import { complain, EXIT, print, readOptions, UsageError, type Command } from '../command.ts'
import { granteeOf, threadKey } from '../naming.ts'
import { onStore, STORE_OPTIONS } from '../on-store.ts'

const OPTIONS = { ...STORE_OPTIONS, thread: { type: 'string' }, user: { type: 'string' }, group: { type: 'string' } } as const

/** The command. */
export const remove: Command = {
  summary: 'takes a grant back',
  help: `threadwarden grants remove --config FILE --thread ID (--user USER | --group GROUP) [--json]

Takes back what was granted on a thread to a user or a group. Streams that are open by it end.

  --config FILE  the configuration (YAML or JSON)
  --thread ID    the thread
  --user USER    whose it was: issuer:subject, of an issuer that may be gone
  --group GROUP  or which group's
  --json         prints {"thread", "removed"} on stdout

Exit codes: 0 done, 1 there was no such grant, an invalid configuration or a failing store, 2 wrong usage.`,

  async run(args) {
    const options = readOptions(args, OPTIONS)
    const { thread, user, group, json } = options
    if (thread === undefined) throw new UsageError('--thread ID is missing')
    const key = threadKey(thread)
    const grantee = granteeOf(user, group)
    return onStore(options, async ({ store }) => {
      const removed = (await store.ungrant(key, null, grantee)) === 'done'
      if (json === true) print(JSON.stringify({ thread, removed }))
      else if (removed) print(`${grantee.kind} ${grantee.id} has no grant on ${thread} any more`)
      else complain(`${grantee.kind} ${grantee.id} has no grant on ${thread}: grants list shows those that there are`)
      return removed ? EXIT.fine : EXIT.failure
    })
  },
}
