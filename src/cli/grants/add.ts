/** `threadwarden grants add`: grants a thread to a user or a group. */
import { BY_OPERATOR, MAX_GRANTS, type Right } from '../../core/decide/sharing.ts'
import { shownGrant } from '../../operator/grant-form.ts'
import { CommandFailed, CONFIG, defineCommand, EXIT, jsonFlag, THREAD_SCOPE, UsageError, value, WITH_SCOPE } from '../command.ts'
import { print, printData } from '../terminal.ts'
import { granteeOf, requireIssuer, threadIdOf } from '../argument-values.ts'
import { threadData, threadText, warnOfNoSharing } from '../format-thread.ts'
import { onStore } from '../with-store.ts'

const RIGHTS: readonly Right[] = ['read', 'write']

export const command = defineCommand({
  usage: ['--thread ID (--user USER | --group GROUP) --right read|write'],
  about: `Grants a thread to a user or a group, and replaces an earlier grant. The right to write includes the right to read. Only the owner
can delete, archive and share the thread.`,
  options: {
    config: CONFIG,
    thread: value('ID', 'the thread, which must have an owner'),
    user: value('USER', 'the user: issuer:subject'),
    group: value('GROUP', 'or the group: issuer:group'),
    right: value('RIGHT', 'read or write'),
    scope: THREAD_SCOPE,
    json: jsonFlag('{"thread", "grant", "outcome"}', WITH_SCOPE),
  },
  exitCodes: {
    0: 'granted',
    1: 'the user owns the thread, the thread has no owner or too many grants, an invalid configuration or a failing store',
  },
  examples: [
    'threadwarden grants add --thread t-1 --user corp:bob --right read',
    'threadwarden grants add --thread t-1 --group corp:support --right write',
  ],

  async run({ thread, right: named, json, ...values }, terminal) {
    const threadId = threadIdOf(thread)
    const right = RIGHTS.find((one) => one === named)
    if (right === undefined) throw new UsageError('--right must be read or write')
    const grantee = granteeOf(values)
    return onStore(terminal, { ...values, json }, async ({ store, prepared, keyOf }) => {
      const key = keyOf(threadId)
      const text = threadText(key)
      requireIssuer(`--${grantee.kind} ${grantee.id}`, grantee.id, prepared.config)
      const grant = { ...grantee, right, grantedBy: BY_OPERATOR, grantedAt: Date.now() }
      const row = (await store.thread(key))?.row
      if (grantee.kind === 'user' && row?.owner === grantee.id && row.deletedAt === null)
        throw new CommandFailed(`${grantee.id} owns ${text}: an owner needs no grant`)
      const outcome = await store.grant(key, null, grant)
      warnOfNoSharing(terminal, prepared.policy)
      if (json) printData(terminal, { ...threadData(key), grant: shownGrant(grant), outcome })
      switch (outcome) {
        case 'done':
        case 'unchanged':
          if (!json)
            print(terminal, `${grantee.kind} ${grantee.id} may ${right} ${text}${outcome === 'unchanged' ? ', as before' : ''}`)
          return EXIT.fine
        case 'not-owner':
          throw new CommandFailed(`${text} has no owner, or was deleted: threadwarden threads owner shows its state`)
        case 'too-many':
          throw new CommandFailed(
            `${text} has ${MAX_GRANTS} grants by operators, which is the most that a thread may have: grant it to a group`,
          )
      }
    })
  },
})
