/** What the model of a store is made of, and the questions that more than one of its parts asks. */
import type { Grantee } from '../../src/core/decide/sharing.ts'
import type { ThreadRow } from '../../src/store/port/administration.ts'
import type { StoredGrant } from '../../src/store/port/grants.ts'
import type { ThreadKey } from '../../src/store/port/thread.ts'
import { byBytes } from './contract/under-test.ts'

/** A row of a thread, with its grants. */
export interface Row {
  readonly key: ThreadKey
  owner: string
  agentId: string
  name: string | null
  archived: boolean
  readonly createdAt: number
  lastUsedAt: number
  deletedAt: number | null
  gone: boolean
  /** Of the deletions that are under way, until a run is claimed. */
  deletion: string | null
  /** True where the one process there is has sent all runs of it. */
  isAllOurs: boolean
  provisional: boolean
  pending: number
  life: number
  grants: readonly StoredGrant[]
}

/** A user who was seen on a thread. */
export interface Sight {
  readonly key: ThreadKey
  readonly userId: string
  readonly agentId: string
  readonly firstUsedAt: number
  readonly lastUsedAt: number
  readonly ran: boolean
}

/** All of it. */
export class Rows {
  readonly rows = new Map<string, Row>()
  sights: readonly Sight[] = []
  deletions = 0

  row(key: ThreadKey): Row | undefined {
    return this.rows.get(nameOf(key))
  }

  /** The row of a thread that is a user's. */
  owned(key: ThreadKey, userId: string): Row | undefined {
    const row = this.row(key)
    return row?.owner === userId ? row : undefined
  }

  /** In the order of their keys. */
  all(): readonly Row[] {
    return [...this.rows.values()].sort((a, b) => byKey(a.key, b.key))
  }

  insert(key: ThreadKey, values: Partial<Row> & Pick<Row, 'owner' | 'createdAt' | 'lastUsedAt'>): void {
    this.rows.set(nameOf(key), {
      key: { scope: key.scope, threadId: key.threadId },
      agentId: '',
      name: null,
      archived: false,
      deletedAt: null,
      gone: false,
      deletion: null,
      isAllOurs: false,
      provisional: false,
      pending: 0,
      life: 0,
      grants: [],
      ...values,
    })
  }

  /** Who ran a thread, the first first. */
  runners(key: ThreadKey): readonly string[] {
    return this.sights
      .filter((one) => one.ran && isSame(one.key, key))
      .sort(byFirstUse)
      .map(({ userId }) => userId)
  }

  forget(key: ThreadKey): void {
    this.sights = this.sights.filter((one) => !isSame(one.key, key))
  }
}

/** What becomes of a row that an operator decides on: another life, with nothing pending, and not gone if a run may be under way. */
export function settled(row: Row): Pick<Row, 'gone' | 'deletion' | 'provisional' | 'pending' | 'life'> {
  return { gone: row.gone && !row.provisional, deletion: null, provisional: false, pending: 0, life: row.life + 1 }
}

/** A row as operators see it. */
export function shown({ key, owner, agentId, name, archived, createdAt, lastUsedAt, deletedAt, provisional }: Row): ThreadRow {
  return { ...key, owner, agentId, name, archived, createdAt, lastUsedAt, deletedAt, provisional }
}

/** A page of what is in the order of its keys. */
export function pageOf<T extends ThreadKey>(all: readonly T[], after: ThreadKey | null, limit: number): readonly T[] {
  return [...all]
    .sort(byKey)
    .filter((one) => after === null || byKey(one, after) > 0)
    .slice(0, limit)
}

export function isTo(grantee: Grantee): (grant: StoredGrant) => boolean {
  return ({ kind, id }) => kind === grantee.kind && id === grantee.id
}

export function isSame(a: ThreadKey, b: ThreadKey): boolean {
  return byKey(a, b) === 0
}

export function byKey(a: ThreadKey, b: ThreadKey): number {
  return byBytes(a.scope, b.scope) || byBytes(a.threadId, b.threadId)
}

export function byFirstUse(a: Sight, b: Sight): number {
  return a.firstUsedAt - b.firstUsedAt || byBytes(a.userId, b.userId)
}

export function byAge(a: StoredGrant, b: StoredGrant): number {
  return a.grantedAt - b.grantedAt || byBytes(a.kind, b.kind) || byBytes(a.id, b.id)
}

function nameOf({ scope, threadId }: ThreadKey): string {
  return JSON.stringify([scope, threadId])
}
