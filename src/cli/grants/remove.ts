/** `threadwarden grants remove`: removes a grant. */
import { CONFIG, defineCommand, EXIT, jsonFlag, THREAD_SCOPE, value, WITH_SCOPE } from '../command.ts'
import { complain, print, printData } from '../terminal.ts'
import { granteeOf, threadIdOf } from '../argument-values.ts'
import { threadData, threadText } from '../format-thread.ts'
import { onStore } from '../with-store.ts'

export const command = defineCommand({
  usage: ['--thread ID (--user USER | --group GROUP)'],
  about: 'Removes a grant of a user or a group on a thread. Open streams that depend on the grant end.',
  options: {
    config: CONFIG,
    thread: value('ID', 'the thread'),
    user: value('USER', 'the user: issuer:subject; also of an issuer that is no longer configured'),
    group: value('GROUP', 'or the group: issuer:group'),
    scope: THREAD_SCOPE,
    json: jsonFlag('{"thread", "removed"}', WITH_SCOPE),
  },
  exitCodes: { 0: 'done', 1: 'there was no such grant, an invalid configuration or a failing store' },
  examples: ['threadwarden grants remove --thread t-1 --user corp:bob'],

  async run(values, terminal) {
    const threadId = threadIdOf(values.thread)
    const grantee = granteeOf(values)
    return onStore(terminal, values, async ({ store, keyOf }) => {
      const key = keyOf(threadId)
      const removed = (await store.ungrant(key, null, grantee)) === 'done'
      if (values.json) printData(terminal, { ...threadData(key), removed }, 0)
      else if (removed) print(terminal, `${grantee.kind} ${grantee.id} no longer has a grant on ${threadText(key)}`)
      else
        complain(
          terminal,
          `${grantee.kind} ${grantee.id} has no grant on ${threadText(key)}: threadwarden grants list shows its grants`,
        )
      return removed ? EXIT.fine : EXIT.failure
    })
  },
})
