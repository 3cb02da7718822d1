/** `threadwarden grants list`: lists the grants on a thread, or of a user or group. */
import type { Grantee } from '../../core/decide/sharing.ts'
import type { Store, StoredGrant, ThreadKey } from '../../store/port.ts'
import { complain, EXIT, print, printData, readOptions, UsageError, type Command } from '../command.ts'
import { GRANT_OPTIONS, grantLine, shownGrant, warnOfNoSharing } from '../format-grant.ts'
import { granteeOf, threadIdOf } from '../argument-values.ts'
import { onStore } from '../with-store.ts'
import { keyNamed, scopeNamed, threadData, threadText } from '../scope-option.ts'

const PAGE = 1000

export const list: Command = {
  summary: 'shows the grants on a thread, or those of a user or a group',
  help: `threadwarden grants list --config FILE (--thread ID | --user USER | --group GROUP) [--scope KEY] [--json]

Shows what was granted on a thread, or to a user or a group by name: what a user gets through their groups is shown with
the groups.

  --config FILE  the configuration (YAML or JSON)
  --thread ID    what was granted on this thread, the oldest first
  --user USER    what was granted to this user, by the ids of the threads
  --group GROUP  what was granted to this group
  --scope KEY    only on threads of the upstream with this key under upstreams or agents, '' for upstream; by default on all,
                 and with --thread on that of upstream
  --json         prints {"grants"} on stdout

Exit codes: 0 done, 1 the thread is not there or was deleted, an invalid configuration or a failing store, 2 wrong usage.`,

  async run(args) {
    const options = readOptions(args, GRANT_OPTIONS)
    const { thread, user, group, json } = options
    if (thread !== undefined && (user !== undefined || group !== undefined))
      throw new UsageError('name one of --thread ID, --user USER and --group GROUP')
    if (thread === undefined && user === undefined && group === undefined)
      throw new UsageError('name --thread ID, --user USER or --group GROUP')
    if (thread !== undefined) threadIdOf(thread)
    const grantee = thread === undefined ? granteeOf(user, group) : null
    return onStore(options, async (opened) => {
      const { store, prepared } = opened
      const key = thread === undefined ? null : await keyNamed(thread, options.scope, opened)
      const found =
        key === null
          ? await allTo(store, grantee as Grantee, await scopeNamed(options.scope, opened))
          : await onThread(store, key)
      if (found === null) {
        complain(`there is no live thread ${key === null ? '' : threadText(key)}: grants are on threads that somebody owns`)
        return EXIT.failure
      }
      warnOfNoSharing(prepared.policy)
      if (json === true) printData({ grants: found.map((one) => ({ ...threadData(one), ...shownGrant(one) })) })
      else if (found.length === 0) complain('nothing was granted')
      else for (const one of found) print(key === null ? `${threadText(one)}: ${grantLine(one)}` : grantLine(one))
      return EXIT.fine
    })
  },
}

type Found = readonly (ThreadKey & StoredGrant)[]

async function onThread(store: Store, key: ThreadKey): Promise<Found | null> {
  const found = await store.grants(key, null)
  return found === null ? null : found.map((grant) => ({ ...grant, ...key }))
}

async function allTo(store: Store, grantee: Grantee, scope: string | undefined): Promise<Found> {
  const all: (ThreadKey & StoredGrant)[] = []
  for (let page: Found = await store.grantedTo(grantee, null, PAGE); page.length > 0;) {
    for (const one of page) if (scope === undefined || one.scope === scope) all.push(one)
    const last = page.at(-1)
    page = last === undefined || page.length < PAGE ? [] : await store.grantedTo(grantee, last, PAGE)
  }
  return all
}
