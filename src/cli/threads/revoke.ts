/** `threadwarden threads revoke`: removes a thread's owner. */
import { CONFIG, defineCommand, EXIT, jsonFlag, THREAD_SCOPE, WITH_SCOPE } from '../command.ts'
import { complain, print, printData } from '../terminal.ts'
import { threadNamed } from '../argument-values.ts'
import { threadData, threadText } from '../format-thread.ts'
import { onStore } from '../with-store.ts'

export const command = defineCommand({
  about: `Removes the owner and the grants of a thread. Then the thread is foreign to all users, including the former owner, and no user can
claim it. threads assign gives it an owner again. Open streams on the thread end. It does not revoke tokens: threadwarden revoke does.`,
  positionals: { ID: 'the thread' },
  options: { config: CONFIG, scope: THREAD_SCOPE, json: jsonFlag('{"thread", "revoked"}', WITH_SCOPE) },
  exitCodes: { 0: 'done', 1: 'the table has no such thread, an invalid configuration or a failing store' },
  examples: ['threadwarden threads revoke t-1'],

  async run(values, terminal, positionals) {
    const threadId = threadNamed(positionals)
    return onStore(terminal, values, async ({ store, keyOf }) => {
      const key = keyOf(threadId)
      const revoked = await store.withhold(key, Date.now())
      if (values.json) printData(terminal, { ...threadData(key), revoked }, 0)
      else if (revoked)
        print(
          terminal,
          `${threadText(key)} has no owner, and no user can claim it: threadwarden threads assign gives it an owner`,
        )
      else
        complain(
          terminal,
          `the table has no thread ${threadText(key)}: give it an owner with threadwarden threads assign, so that no other user claims it`,
        )
      return revoked ? EXIT.fine : EXIT.failure
    })
  },
})
