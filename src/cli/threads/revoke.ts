/** `threadwarden threads revoke`: removes a thread's owner. */
import { complain, EXIT, print, printData, readArguments, type Command } from '../command.ts'
import { threadNamed } from '../argument-values.ts'
import { onStore, STORE_OPTIONS } from '../with-store.ts'
import { keyNamed, SCOPE_OPTION, threadData, threadText } from '../scope-option.ts'

export const revoke: Command = {
  summary: "takes a thread's owner away: it is foreign to everybody",
  help: `threadwarden threads revoke --config FILE ID [--scope KEY] [--json]

Takes a thread's owner away, with its grants. It is foreign to everybody then, its owner included, and nobody can claim it,
until threads assign gives it to somebody. Streams that are open on it end.

  --config FILE  the configuration (YAML or JSON)
  ID             the thread
  --scope KEY    its upstream's key under upstreams or agents; by default it is one of upstream
  --json         prints {"thread", "revoked"} on stdout, with "scope" where the thread is not one of upstream

Exit codes: 0 done, 1 the table has no such thread, an invalid configuration or a failing store, 2 wrong usage.`,

  async run(args) {
    const { values, positionals } = readArguments(args, { ...STORE_OPTIONS, ...SCOPE_OPTION })
    const threadId = threadNamed(positionals)
    return onStore(values, async (opened) => {
      const key = await keyNamed(threadId, values.scope, opened)
      const revoked = await opened.store.withhold(key, Date.now())
      if (values.json === true) printData({ ...threadData(key), revoked }, 0)
      else if (revoked)
        print(`${threadText(key)} belongs to nobody, and nobody can claim it; threads assign gives it to somebody`)
      else complain(`the table has no thread ${threadText(key)}: threads assign gives it an owner, so that nobody else claims it`)
      return revoked ? EXIT.fine : EXIT.failure
    })
  },
}
