/** `threadwarden threads revoke`: takes a thread's owner away. */
import { complain, EXIT, print, readArguments, type Command } from '../command.ts'
import { threadNamed } from '../naming.ts'
import { onStore, STORE_OPTIONS } from '../on-store.ts'

/** The command. */
export const revoke: Command = {
  summary: "takes a thread's owner away: it is foreign to everybody",
  help: `threadwarden threads revoke --config FILE ID [--json]

Takes a thread's owner away, with its grants. It is foreign to everybody then, its owner included, and nobody can claim it,
until threads assign gives it to somebody. Streams that are open on it end.

  --config FILE  the configuration (YAML or JSON)
  ID             the thread
  --json         prints {"thread", "revoked"} on stdout

Exit codes: 0 done, 1 the table has no such thread, an invalid configuration or a failing store, 2 wrong usage.`,

  async run(args) {
    const { values, positionals } = readArguments(args, STORE_OPTIONS)
    const key = threadNamed(positionals)
    return onStore(values, async ({ store }) => {
      const revoked = await store.withhold(key, Date.now())
      if (values.json === true) print(JSON.stringify({ thread: key.threadId, revoked }))
      else if (revoked) print(`${key.threadId} belongs to nobody, and nobody can claim it; threads assign gives it to somebody`)
      else complain(`the table has no thread ${key.threadId}: threads assign gives it an owner, so that nobody else claims it`)
      return revoked ? EXIT.fine : EXIT.failure
    })
  },
}
