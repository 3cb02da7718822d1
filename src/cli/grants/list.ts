/** `threadwarden grants list`: lists the grants on a thread, or of a user or group. */
import type { Grantee } from '../../core/decide/sharing.ts'
import { shownGrant } from '../../operator/grant-form.ts'
import type { GrantStore, StoredGrant } from '../../store/port/grants.ts'
import type { ThreadKey } from '../../store/port/thread.ts'
import { CommandFailed, CONFIG, defineCommand, EXIT, jsonFlag, SCOPE_FILTER, UsageError, value } from '../command.ts'
import { complain, print, printData } from '../terminal.ts'
import { granteeOf, threadIdOf } from '../argument-values.ts'
import { grantLine, threadData, threadText, warnOfNoSharing } from '../format-thread.ts'
import { onStore } from '../with-store.ts'

const PAGE = 1000

export const command = defineCommand({
  usage: ['(--thread ID | --user USER | --group GROUP)'],
  about:
    'Lists the grants on a thread, or the grants to a user or a group. Grants to the groups of a user are listed only with --group.',
  options: {
    config: CONFIG,
    thread: value('ID', 'the grants on this thread, oldest first; without --scope, a thread of upstream'),
    user: value('USER', 'the grants of this user, in the order of thread ids'),
    group: value('GROUP', 'the grants of this group'),
    scope: SCOPE_FILTER,
    json: jsonFlag('{"grants"}'),
  },
  exitCodes: { 0: 'done', 1: 'the thread does not exist or was deleted, an invalid configuration or a failing store' },
  examples: ['threadwarden grants list --thread t-1', 'threadwarden grants list --user corp:bob'],

  async run(values, terminal) {
    const { thread, user, group } = values
    if (thread !== undefined && (user !== undefined || group !== undefined))
      throw new UsageError('name one of --thread ID, --user USER and --group GROUP')
    if (thread === undefined && user === undefined && group === undefined)
      throw new UsageError('name --thread ID, --user USER or --group GROUP')
    const on = thread === undefined ? granteeOf(values) : threadIdOf(thread)
    return onStore(terminal, values, async ({ store, prepared, scope, keyOf }) => {
      let found: readonly Found[]
      if (typeof on === 'string') {
        const key = keyOf(on)
        const grants = await store.grants(key, null)
        if (grants === null)
          throw new CommandFailed(`${threadText(key)} does not exist or was deleted: only a thread with an owner has grants`)
        found = grants.map((grant) => ({ ...grant, ...key }))
      } else found = await allTo(store, on, scope)
      warnOfNoSharing(terminal, prepared.policy)
      if (values.json) printData(terminal, { grants: found.map((one) => ({ ...threadData(one), ...shownGrant(one) })) })
      else if (found.length === 0) complain(terminal, 'there are no grants')
      else for (const one of found) print(terminal, `${typeof on === 'string' ? '' : `${threadText(one)}: `}${grantLine(one)}`)
      return EXIT.fine
    })
  },
})

type Found = ThreadKey & StoredGrant

async function allTo(store: GrantStore, grantee: Grantee, scope: string | undefined): Promise<readonly Found[]> {
  const all: Found[] = []
  for (let page: readonly Found[] = await store.grantedTo(grantee, null, PAGE); page.length > 0;) {
    for (const one of page) if (scope === undefined || one.scope === scope) all.push(one)
    const last = page.at(-1)
    page = last === undefined || page.length < PAGE ? [] : await store.grantedTo(grantee, last, PAGE)
  }
  return all
}
