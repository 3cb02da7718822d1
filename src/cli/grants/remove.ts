/** `threadwarden grants remove`: removes a grant. */
import { complain, EXIT, print, printData, readOptions, UsageError, type Command } from '../command.ts'
import { GRANT_OPTIONS } from '../format-grant.ts'
import { granteeOf, threadIdOf } from '../argument-values.ts'
import { onStore } from '../with-store.ts'
import { keyNamed, threadData, threadText } from '../scope-option.ts'

export const remove: Command = {
  summary: 'takes a grant back',
  help: `threadwarden grants remove --config FILE --thread ID (--user USER | --group GROUP) [--scope KEY] [--json]

Takes back what was granted on a thread to a user or a group. Streams that are open by it end.

  --config FILE  the configuration (YAML or JSON)
  --thread ID    the thread
  --user USER    whose it was: issuer:subject, of an issuer that may be gone
  --group GROUP  or which group's
  --scope KEY    its upstream's key under upstreams or agents; by default it is one of upstream
  --json         prints {"thread", "removed"} on stdout, with "scope" where the thread is not one of upstream

Exit codes: 0 done, 1 there was no such grant, an invalid configuration or a failing store, 2 wrong usage.`,

  async run(args) {
    const options = readOptions(args, GRANT_OPTIONS)
    const { thread, user, group, json } = options
    if (thread === undefined) throw new UsageError('--thread ID is missing')
    threadIdOf(thread)
    const grantee = granteeOf(user, group)
    return onStore(options, async (opened) => {
      const key = await keyNamed(thread, options.scope, opened)
      const removed = (await opened.store.ungrant(key, null, grantee)) === 'done'
      if (json === true) printData({ ...threadData(key), removed }, 0)
      else if (removed) print(`${grantee.kind} ${grantee.id} has no grant on ${threadText(key)} any more`)
      else complain(`${grantee.kind} ${grantee.id} has no grant on ${threadText(key)}: grants list shows those that there are`)
      return removed ? EXIT.fine : EXIT.failure
    })
  },
}
