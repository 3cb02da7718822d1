/** `threadwarden grants add`: grants a thread to a user or a group. */
import { BY_OPERATOR, MAX_GRANTS, type Right } from '../../core/decide/sharing.ts'
import { complain, EXIT, print, printData, readOptions, UsageError, type Command } from '../command.ts'
import { GRANT_OPTIONS, shownGrant, warnOfNoSharing } from '../format-grant.ts'
import { granteeOf, newGranteeOf, threadIdOf } from '../argument-values.ts'
import { onStore } from '../with-store.ts'
import { keyNamed, threadData, threadText } from '../scope-option.ts'

const OPTIONS = { ...GRANT_OPTIONS, right: { type: 'string' } } as const

const RIGHTS: readonly Right[] = ['read', 'write']

export const add: Command = {
  summary: 'grants a thread to a user or a group',
  help: `threadwarden grants add --config FILE --thread ID (--user USER | --group GROUP) --right read|write
                       [--scope KEY] [--json]

Grants a thread, in place of what the user or group had on it. Who may write may read, too; deleting, archiving and granting
stay with the owner.

  --config FILE  the configuration (YAML or JSON)
  --thread ID    the thread, which somebody must own
  --user USER    to whom: issuer:subject
  --group GROUP  or to which group: issuer:group
  --right RIGHT  read or write
  --scope KEY    its upstream's key under upstreams or agents; by default it is one of upstream
  --json         prints {"thread", "grant", "outcome"} on stdout, with "scope" where the thread is not one of upstream

Exit codes: 0 granted, or it was before, 1 the thread is the user's own, has no owner or too many grants, an invalid
configuration or a failing store, 2 wrong usage.`,

  async run(args) {
    const options = readOptions(args, OPTIONS)
    const { thread, user, group, json } = options
    if (thread === undefined) throw new UsageError('--thread ID is missing')
    threadIdOf(thread)
    const right = RIGHTS.find((one) => one === options.right)
    if (right === undefined) throw new UsageError('--right is read or write')
    granteeOf(user, group)
    return onStore(options, async (opened) => {
      const { store, prepared } = opened
      const key = await keyNamed(thread, options.scope, opened)
      const named = threadText(key)
      const grantee = newGranteeOf(user, group, Object.keys(prepared.config.authentication.issuers))
      const grant = { ...grantee, right, grantedBy: BY_OPERATOR, grantedAt: Date.now() }
      const row = (await store.thread(key))?.row
      if (grantee.kind === 'user' && row?.owner === grantee.id && row.deletedAt === null) {
        complain(`${named} is ${grantee.id}'s own: there is nothing to grant`)
        return EXIT.failure
      }
      const outcome = await store.grant(key, null, grant)
      warnOfNoSharing(prepared.policy)
      if (json === true) printData({ ...threadData(key), grant: shownGrant(grant), outcome })
      switch (outcome) {
        case 'done':
        case 'unchanged':
          if (json !== true)
            print(`${grantee.kind} ${grantee.id} may ${right} ${named}${outcome === 'unchanged' ? ', as before' : ''}`)
          return EXIT.fine
        case 'not-owner':
          complain(`nobody owns ${named}, or it was deleted: threads owner shows what is known of it`)
          return EXIT.failure
        case 'too-many':
          complain(`${named} has ${MAX_GRANTS} grants by operators, which is all that a thread may have: grant it to a group`)
          return EXIT.failure
      }
    })
  },
}
