/** What requests ask of a store, in the model. */
import { BY_OPERATOR, MAX_GRANTS, rightIn, type Grantee, type Reader } from '../../src/core/decide/sharing.ts'
import type { ThreadAccess } from '../../src/store/port/access.ts'
import { LONGEST_RUN, type AtUpstream, type Claim, type ClaimResult, type RunOutcome } from '../../src/store/port/claims.ts'
import type { GrantOutcome, StoredGrant } from '../../src/store/port/grants.ts'
import type { ListedThread, ListWindow } from '../../src/store/port/lists.ts'
import { NOBODY, type ThreadKey } from '../../src/store/port/thread.ts'
import { byBytes } from './contract/under-test.ts'
import { byAge, byFirstUse, isSame, isTo, pageOf, Rows, type Row } from './model-rows.ts'

const MINUTE = 60_000

/** The methods; each does in one step what it says. */
export class RequestModel extends Rows {
  async accessTo(key: ThreadKey, reader: Reader): Promise<ThreadAccess> {
    const row = this.row(key)
    const runners = this.runners(key)
    if (row === undefined) return { row: null, runners }
    const deleted = row.deletedAt !== null
    return {
      row: { owner: row.owner, deleted, provisional: row.provisional, granted: deleted ? null : rightIn(row.grants, reader) },
      runners,
    }
  }

  async accessToSeveral(scope: string, threadIds: readonly string[], reader: Reader): Promise<ReadonlyMap<string, ThreadAccess>> {
    const all = new Map<string, ThreadAccess>()
    for (const threadId of threadIds) {
      const known = await this.accessTo({ scope, threadId }, reader)
      if (known.row !== null || known.runners.length > 0) all.set(threadId, known)
    }
    return all
  }

  async accessOfReader(scope: string, reader: Reader, most: number): Promise<ReadonlyMap<string, ThreadAccess> | null> {
    const rows = this.all().filter(
      ({ key, owner, grants }) =>
        key.scope === scope && ((owner === reader.userId && owner !== NOBODY) || rightIn(grants, reader) !== null),
    )
    if (rows.length > most) return null
    const all = await this.accessToSeveral(
      scope,
      rows.map(({ key }) => key.threadId),
      reader,
    )
    return new Map([...all].map(([threadId, { row }]) => [threadId, { row, runners: [] }]))
  }

  async claim(key: ThreadKey, { userId, agentId, guest, now }: Claim): Promise<ClaimResult> {
    const row = this.row(key)
    if (row === undefined) {
      if (guest) return { outcome: 'foreign' }
      this.insert(key, {
        owner: userId,
        agentId,
        createdAt: now,
        lastUsedAt: now,
        provisional: true,
        pending: 1,
        isAllOurs: true,
      })
      return { outcome: 'new', registration: 0 }
    }
    if (row.owner !== userId || (guest && row.deletedAt !== null)) return { outcome: 'foreign' }
    if (row.provisional) {
      row.pending += 1
      return { outcome: 'own', registration: row.life }
    }
    if (row.deletedAt === null) {
      if (now - row.lastUsedAt >= MINUTE) row.lastUsedAt = now
      row.deletion = null
      return { outcome: 'own', registration: null }
    }
    Object.assign(row, { provisional: true, pending: 1, life: row.life + 1, agentId, lastUsedAt: now, deletion: null })
    return { outcome: 'new', registration: row.life }
  }

  async noteWrite(key: ThreadKey, now: number): Promise<void> {
    const row = this.row(key)
    if (row === undefined) return
    if (row.deletion !== null) row.isAllOurs = false
    if (row.deletedAt === null && now - row.lastUsedAt >= 60 * MINUTE) row.lastUsedAt = now
    row.gone = false
  }

  async settle(key: ThreadKey, userId: string, registration: number, outcome: RunOutcome): Promise<boolean> {
    const row = this.owned(key, userId)
    if (row?.provisional !== true || row.life !== registration) return false
    if (outcome !== 'not-started') {
      if (outcome === 'confirmed' || row.deletedAt !== null)
        Object.assign(row, { provisional: false, pending: 0, deletedAt: null, gone: false })
      return false
    }
    row.pending -= 1
    if (row.pending > 0) return false
    if (row.deletedAt === null) for (const [name, one] of this.rows) if (one === row) this.rows.delete(name)
    row.provisional = false
    return true
  }

  async rename(key: ThreadKey, userId: string, name: string | null): Promise<boolean> {
    return this.#note(key, userId, { name })
  }

  async archive(key: ThreadKey, userId: string, { archived }: { readonly archived: boolean }): Promise<boolean> {
    return this.#note(key, userId, { archived })
  }

  async bury(key: ThreadKey, userId: string, now: number, upstream: AtUpstream): Promise<void> {
    const row = this.owned(key, userId)
    if (row !== undefined)
      Object.assign(row, {
        deletedAt: now,
        gone: upstream === 'deleted',
        deletion: null,
        provisional: false,
        pending: 0,
        grants: [],
      })
  }

  async beginDeletion(key: ThreadKey, userId: string): Promise<string | null> {
    const row = this.owned(key, userId)
    if (row === undefined || row.deletedAt !== null || row.provisional) return null
    row.deletion ??= String((this.deletions += 1))
    return row.deletion
  }

  async endDeletion(key: ThreadKey, userId: string, deletion: string, now: number, upstream: AtUpstream): Promise<boolean> {
    const row = this.owned(key, userId)
    if (row === undefined || row.deletedAt !== null || row.deletion !== deletion) return false
    const isIdle = row.lastUsedAt < now - LONGEST_RUN - 2 * 60 * MINUTE
    Object.assign(row, { deletedAt: now, gone: upstream === 'deleted' && (row.isAllOurs || isIdle), deletion: null, grants: [] })
    return true
  }

  async listed(scope: string, reader: Reader | 'everybody', window: ListWindow): Promise<readonly ListedThread[]> {
    const entries = this.all().flatMap((row): ListedThread[] => {
      const granted = reader === 'everybody' ? null : rightIn(row.grants, reader)
      const isTheirs = reader === 'everybody' || row.owner === reader.userId || granted !== null
      if (row.key.scope !== scope || row.deletedAt !== null || !isTheirs) return []
      if (window.agentId !== null && row.agentId !== window.agentId) return []
      if (row.archived && !window.includeArchived) return []
      const { owner, provisional, agentId, name, archived, createdAt, lastUsedAt: updatedAt } = row
      return [{ threadId: row.key.threadId, owner, provisional, granted, agentId, name, archived, createdAt, updatedAt }]
    })
    const order = (a: Pick<ListedThread, 'updatedAt' | 'threadId'>, b: typeof a): number =>
      b.updatedAt - a.updatedAt || byBytes(a.threadId, b.threadId)
    const { after, limit } = window
    return entries
      .sort(order)
      .filter((one) => after === null || order(one, after) > 0)
      .slice(0, limit)
  }

  async observe(key: ThreadKey, userId: string, agentId: string, use: 'run' | 'other', now: number): Promise<void> {
    const ran = use === 'run'
    const there = this.sights.find((one) => isSame(one.key, key) && one.userId === userId)
    if (there === undefined) {
      const isHeardOf = ran || this.row(key) !== undefined || this.runners(key).length > 0
      if (isHeardOf) this.sights = [...this.sights, { key, userId, agentId, firstUsedAt: now, lastUsedAt: now, ran }]
      return
    }
    if (now - there.lastUsedAt < MINUTE && (there.ran || !ran)) return
    const next = { ...there, lastUsedAt: now, ran: there.ran || ran, agentId: agentId === '' ? there.agentId : agentId }
    this.sights = this.sights.map((one) => (one === there ? next : one))
  }

  async observed(after: ThreadKey | null, limit: number) {
    const runs = this.sights.filter((one) => one.ran && this.row(one.key) === undefined).sort(byFirstUse)
    const first = runs.filter((run) => runs.find((other) => isSame(run.key, other.key)) === run)
    const all = first.map(({ key, agentId }) => {
      const ofThread = runs.filter((run) => isSame(run.key, key))
      return {
        ...key,
        runners: ofThread.map(({ userId }) => userId),
        agentId,
        firstUsedAt: Math.min(...ofThread.map(({ firstUsedAt }) => firstUsedAt)),
        lastUsedAt: Math.max(...ofThread.map(({ lastUsedAt }) => lastUsedAt)),
      }
    })
    return pageOf(all, after, limit)
  }

  async grants(key: ThreadKey, owner: string | null): Promise<readonly StoredGrant[] | null> {
    const row = this.#grantable(key, owner)
    return row === undefined ? null : [...row.grants].sort(byAge)
  }

  async grant(key: ThreadKey, owner: string | null, grant: StoredGrant): Promise<GrantOutcome> {
    const row = this.#grantable(key, owner)
    if (row === undefined) return 'not-owner'
    const there = row.grants.find(isTo(grant))
    if (there?.right === grant.right) return 'unchanged'
    const byOperator = grant.grantedBy === BY_OPERATOR
    const alike = row.grants.filter((one) => (one.grantedBy === BY_OPERATOR) === byOperator)
    if ((there === undefined || !alike.includes(there)) && alike.length >= MAX_GRANTS) return 'too-many'
    row.grants = [...row.grants.filter((one) => one !== there), grant]
    return 'done'
  }

  async ungrant(key: ThreadKey, owner: string | null, grantee: Grantee): Promise<GrantOutcome> {
    const row = this.#grantable(key, owner)
    if (row === undefined) return 'not-owner'
    const there = row.grants.find(isTo(grantee))
    row.grants = row.grants.filter((one) => one !== there)
    return there === undefined ? 'unchanged' : 'done'
  }

  async grantedTo(grantee: Grantee, after: ThreadKey | null, limit: number) {
    const all = this.all().flatMap(({ key, grants }) => grants.filter(isTo(grantee)).map((grant) => ({ ...key, ...grant })))
    return pageOf(all, after, limit)
  }

  #note(key: ThreadKey, userId: string, values: Partial<Row>): boolean {
    const row = this.owned(key, userId)
    if (row === undefined || row.deletedAt !== null) return false
    Object.assign(row, values)
    return true
  }

  #grantable(key: ThreadKey, owner: string | null): Row | undefined {
    const row = this.row(key)
    if (row === undefined || row.deletedAt !== null || row.owner === '') return undefined
    return owner === null || row.owner === owner ? row : undefined
  }
}
