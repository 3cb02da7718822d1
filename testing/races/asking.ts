/** Asks a store what the model of a thread knows the answer to, and brings the answer into the model's form. */
import type { Store } from '../../src/store/port/store.ts'
import { grantText, type Answer, type Call, type SeenAccess } from './thread-calls.ts'

const SCOPE = ''

/** More rows than a history has: a step on all threads is on all of its threads. */
const ALL_ROWS = 1000
/** What was deleted by now was deleted before that, in milliseconds from now. */
const LATER_MS = 60_000

/** Does one call on a thread. */
export async function ask(store: Store, threadId: string, call: Call): Promise<Answer> {
  const key = { scope: SCOPE, threadId }
  const now = Date.now()
  switch (call.op) {
    case 'claim':
      return store.claim(key, { userId: call.user, agentId: 'default', guest: call.guest, now })
    case 'settle':
      return store.settle(key, call.user, call.registration, call.outcome)
    case 'bury':
      await store.bury(key, call.user, now, 'deleted')
      return null
    case 'rename':
      return store.rename(key, call.user, call.name)
    case 'archive':
      return store.archive(key, call.user, { archived: call.archived })
    case 'grant':
      return store.grant(key, call.owner, { ...call.grant, grantedBy: 'operator', grantedAt: now })
    case 'ungrant':
      return store.ungrant(key, call.owner, call.grantee)
    case 'assign':
      return store.assign(key, call.user, now)
    case 'withhold':
      return store.withhold(key, now)
    case 'transfer':
      await store.transfer(call.from, call.to, ALL_ROWS)
      return null
    case 'erase':
      await store.erase(call.user, now, ALL_ROWS)
      return null
    case 'prune':
      await store.prune({ deletedBefore: now + LATER_MS }, ALL_ROWS)
      return null
    case 'accessTo':
      return seenAccess((await store.accessTo(key, call.reader)).row)
    case 'accessToSeveral':
      return seenAccess((await store.accessToSeveral(SCOPE, [threadId], call.reader)).get(threadId)?.row ?? null)
    case 'thread': {
      const found = await store.thread(key)
      if (found === null || found.row === null) return null
      const { owner, deletedAt, provisional, name, archived } = found.row
      const grants = found.grants.map(grantText).sort()
      return { owner, deleted: deletedAt !== null, provisional, name, archived, grants }
    }
  }
}

function seenAccess(row: SeenAccess): SeenAccess {
  return row === null ? null : { owner: row.owner, deleted: row.deleted, provisional: row.provisional, granted: row.granted }
}
