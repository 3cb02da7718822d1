/**
 * The store as it would be in plain TypeScript without a database: what the port says, step by step. Real stores are held
 * against it. What works in steps does all of it in one.
 */
import type {
  AssignOutcome,
  PruneRule,
  RowFilter,
  ThreadRow,
  UserData,
  ImportedThread,
  ImportOutcome,
} from '../../src/store/port/administration.ts'
import type { StoredGrant } from '../../src/store/port/grants.ts'
import type { Store } from '../../src/store/port/store.ts'
import { NOBODY, type ThreadKey } from '../../src/store/port/thread.ts'
import { byBytes, user } from './contract/under-test.ts'
import { RequestModel } from './model-requests.ts'
import { byAge, byKey, isSame, isTo, pageOf, settled, shown, type Row, type Sight } from './model-rows.ts'

/** What of the port the model does not know. */
type Beside =
  | 'isEmpty'
  | 'secret'
  | 'fault'
  | 'close'
  | 'onInvalidation'
  | 'unowned'
  | 'stats'
  | 'unconfirmed'
  | 'revoke'
  | 'lift'
  | 'revocations'
  | 'revocationsVersion'

/** A store, or its model. */
export type Modelled = Omit<Store, Beside>

/** One store. */
export class Model extends RequestModel implements Modelled {
  async thread(key: ThreadKey) {
    const row = this.row(key)
    const runners = this.runners(key)
    if (row === undefined && runners.length === 0) return null
    return { row: row === undefined ? null : shown(row), grants: [...(row?.grants ?? [])].sort(byAge), runners }
  }

  async threads(
    { scope, owner, agentId, deleted = 'too' }: RowFilter,
    after: ThreadKey | null,
    limit: number,
  ): Promise<readonly ThreadRow[]> {
    const rows = this.all().filter(
      (row) =>
        (scope === undefined || row.key.scope === scope) &&
        (owner === undefined || row.owner === owner) &&
        (agentId === undefined || row.agentId === agentId) &&
        (deleted === 'too' || (deleted === 'only') === (row.deletedAt !== null)),
    )
    return pageOf(rows.map(shown), after, limit)
  }

  async import(
    rows: readonly ImportedThread[],
    { dryRun, settleConflicts }: { readonly dryRun: boolean; readonly settleConflicts: boolean },
  ): Promise<readonly ImportOutcome[]> {
    const [before, sights] = [[...this.rows], this.sights]
    const outcomes = rows.map((row) => this.#import(row, settleConflicts))
    if (dryRun) {
      this.rows.clear()
      for (const [name, row] of before) this.rows.set(name, row)
      this.sights = sights
    }
    return outcomes
  }

  #import({ scope, threadId, ...values }: ImportedThread, settleConflicts: boolean): ImportOutcome {
    const key = { scope, threadId }
    const there = this.row(key)
    if (there !== undefined) {
      const users = there.owner === NOBODY ? [] : [there.owner]
      if (there.deletedAt !== null) return { outcome: 'conflict', with: 'deleted', users }
      return there.owner === values.owner ? { outcome: 'same' } : { outcome: 'conflict', with: 'owner', users }
    }
    const others = this.runners(key).filter((userId) => userId !== values.owner)
    if (others.length > 0 && !settleConflicts) return { outcome: 'conflict', with: 'observed', users: others }
    this.insert(key, values)
    this.forget(key)
    return { outcome: 'added' }
  }

  async assign(key: ThreadKey, to: string, now: number, expected?: string | null): Promise<AssignOutcome> {
    const row = this.row(key)
    const owner = row?.owner ?? null
    if (expected !== undefined && expected !== owner) return { outcome: 'changed', owner }
    if (row?.owner === to && row.deletedAt === null && !row.provisional) return { outcome: 'same' }
    if (row === undefined) this.insert(key, { owner: to, createdAt: now, lastUsedAt: now })
    else Object.assign(row, { ...settled(row), owner: to, deletedAt: null, gone: false, grants: [] })
    this.forget(key)
    return { outcome: 'assigned', before: owner }
  }

  async withhold(key: ThreadKey): Promise<boolean> {
    const row = this.row(key)
    if (row !== undefined && row.owner !== NOBODY) Object.assign(row, { ...settled(row), owner: NOBODY, grants: [] })
    return row !== undefined
  }

  async transfer(from: string, to: string, _limit?: number, scope?: string): Promise<number> {
    if (from === to) return 0
    const isIn = (key: ThreadKey): boolean => scope === undefined || key.scope === scope
    const moved = this.all().filter(({ key, owner }) => owner === from && isIn(key))
    for (const row of moved) {
      // A live row that no run has confirmed stays one, as by a run that nobody will settle.
      const open = row.provisional && row.deletedAt === null ? { provisional: true, pending: 1 } : {}
      Object.assign(row, { ...settled(row), ...open, owner: to, grants: row.grants.filter((grant) => !isTo(user(to))(grant)) })
    }
    const granted = this.all().filter(({ key, grants }) => isIn(key) && grants.some(isTo(user(from))))
    for (const row of granted) row.grants = grantsAfter(row, from, to)
    const seen = this.sights.filter(({ key, userId }) => userId === from && isIn(key))
    for (const sight of seen) this.#rename(sight, to)
    return moved.length + granted.length + seen.length
  }

  #rename(sight: Sight, to: string): void {
    const there = this.sights.find((one) => one.userId === to && isSame(one.key, sight.key))
    this.sights = this.sights.filter((one) => one !== sight && one !== there)
    this.sights = [...this.sights, there === undefined ? { ...sight, userId: to } : merged(sight, there)]
  }

  async prune(rule: PruneRule): Promise<number> {
    const rows = this.#prunable(rule)
    for (const row of rows) {
      for (const [name, one] of this.rows) if (one === row) this.rows.delete(name)
      this.forget(row.key)
    }
    return rows.length
  }

  async prunable(rule: PruneRule): Promise<number> {
    return this.#prunable(rule).length
  }

  #prunable({ scope, deletedBefore, unusedSince }: PruneRule): readonly Row[] {
    if ((deletedBefore === undefined) === (unusedSince === undefined)) return []
    return this.all().filter((row) => {
      if (scope !== undefined && row.key.scope !== scope) return false
      if (unusedSince !== undefined) return row.deletedAt === null && row.lastUsedAt < unusedSince
      return row.gone && !row.provisional && row.deletedAt !== null && row.deletedAt < (deletedBefore ?? 0)
    })
  }

  async userData(userId: string): Promise<UserData> {
    const owned = this.all().filter(({ owner }) => owner === userId)
    const grants = this.all().flatMap((row) =>
      [...row.grants].sort(byGrantee).map((grant) => ({ isTheirs: owned.includes(row), grant: { ...row.key, ...grant } })),
    )
    const only = (isMeant: (one: (typeof grants)[number]) => boolean) => grants.filter(isMeant).map(({ grant }) => grant)
    return {
      threads: owned.map(shown),
      granted: only(({ isTheirs, grant }) => isTheirs || grant.grantedBy === userId),
      received: only(({ grant }) => isTo(user(userId))(grant)),
      observed: this.sights
        .filter((one) => one.userId === userId)
        .map(({ key, agentId, firstUsedAt, lastUsedAt }) => ({ ...key, agentId, firstUsedAt, lastUsedAt }))
        .sort(byKey),
      revocations: [],
    }
  }

  async erase(userId: string, now: number): Promise<number> {
    const { threads, received, observed } = await this.userData(userId)
    for (const row of this.all()) {
      if (row.owner === userId)
        Object.assign(row, { ...settled(row), owner: NOBODY, name: null, deletedAt: row.deletedAt ?? now, grants: [] })
      row.grants = row.grants.filter((grant) => !isTo(user(userId))(grant) && grant.grantedBy !== userId)
    }
    for (const { key, agentId, ran, firstUsedAt, lastUsedAt } of this.sights.filter((one) => one.userId === userId)) {
      if (ran && this.row(key) === undefined)
        this.insert(key, { owner: NOBODY, agentId, createdAt: firstUsedAt, lastUsedAt, deletedAt: now })
    }
    this.sights = this.sights.filter((one) => one.userId !== userId)
    return threads.length + received.length + observed.length
  }
}

/** The grants of a row when those to one user have become another's. Nothing is granted to the owner. */
function grantsAfter({ owner, grants }: Row, from: string, to: string): readonly StoredGrant[] {
  const old = grants.find(isTo(user(from)))
  const left = grants.filter((grant) => grant !== old)
  const own = left.find(isTo(user(to)))
  if (old === undefined || owner === to || own?.right === 'write' || own?.right === old.right) return left
  return [...left.filter((grant) => grant !== own), { ...old, id: to }]
}

/** What was seen of two users who are one. */
function merged(from: Sight, to: Sight): Sight {
  const later = from.lastUsedAt > to.lastUsedAt ? from.agentId : to.agentId
  return {
    ...to,
    firstUsedAt: Math.min(from.firstUsedAt, to.firstUsedAt),
    lastUsedAt: Math.max(from.lastUsedAt, to.lastUsedAt),
    ran: from.ran || to.ran,
    agentId: later === '' ? from.agentId || to.agentId : later,
  }
}

function byGrantee(a: StoredGrant, b: StoredGrant): number {
  return byBytes(a.kind, b.kind) || byBytes(a.id, b.id)
}
