/** Stores revocations in PostgreSQL. */
import type { Revocation } from '../../core/decide/credential.ts'
import type { Queries } from '../../postgres/pool.ts'
import { StoreUnavailable, type RevocationStore, type Revoked } from '../port.ts'
import type { Database, Tables } from './database.ts'
import type { SchemaIdentity } from './schema-identity.ts'

interface Row {
  readonly kind: 'token' | 'user'
  readonly id: string
  readonly before: number | null
  readonly revokedAt: number
}

const COLUMNS = 'kind, id, issued_before AS before, revoked_at AS "revokedAt"'

/** $1 is the user. */
export function revocationsOfUserText(revocations: string): string {
  return `SELECT ${COLUMNS} FROM ${revocations} WHERE kind = 'user' AND id = $1`
}

/**
 * Accepts no answer of a schema other than the opened one: an empty one revokes nothing, and known revocations stay active.
 * @param made an SQL expression: when the schema was made
 */
export function revocationsOn(
  database: Database,
  { revocations, versions }: Tables,
  made: string,
  identity: SchemaIdentity,
): RevocationStore {
  // Of two revocations of one user the wider stays; null is wider than any time. Two of one token are equal.
  const UPSERT = {
    text: `INSERT INTO ${revocations} AS there (kind, id, issued_before, revoked_at) VALUES ($1, $2, $3, $4)
      ON CONFLICT (kind, id) DO UPDATE SET issued_before = excluded.issued_before, revoked_at = excluded.revoked_at
      WHERE there.issued_before IS NOT NULL
        AND (excluded.issued_before IS NULL OR excluded.issued_before > there.issued_before)`,
  }
  const REMOVE = { text: `DELETE FROM ${revocations} WHERE kind = $1 AND id = $2 RETURNING 1 AS done` }
  // The last statement of its transaction: changes are committed in the order of their numbers.
  const NEXT = { text: `UPDATE ${versions} SET value = value + 1 WHERE name = 'revocations'` }
  const ALL = { text: `SELECT ${COLUMNS} FROM ${revocations} ORDER BY kind, id` }
  const VERSION = {
    name: 'revocations-version',
    text: `SELECT value, ${made} AS made FROM ${versions} WHERE name = 'revocations'`,
  }
  /** @throws StoreUnavailable if the schema is another than the opened one */
  const versionIn = async (queries: Queries): Promise<number> => {
    const [row] = await queries.query<{ value: number; made: number | null }>(VERSION)
    identity.note(row?.made ?? null)
    const fault = identity.fault()
    if (row === undefined || fault !== null) {
      throw new StoreUnavailable(`the ownership store failed: ${fault ?? 'the version of the revocations is missing'}`)
    }
    return row.value
  }
  return {
    revoke: (revocation) =>
      database.transaction(async (queries) => {
        const before = revocation.kind === 'token' ? null : revocation.before
        await queries.query(UPSERT, [...keyOf(revocation), before, revocation.revokedAt])
        await queries.query(NEXT)
      }),
    lift: (what) =>
      database.transaction(async (queries) => {
        const lifted = (await queries.query(REMOVE, keyOf(what))).length > 0
        if (lifted) await queries.query(NEXT)
        return lifted
      }),
    revocations: () =>
      database.transaction(async (queries) => {
        await versionIn(queries)
        return (await queries.query<Row>(ALL)).map(revocationOf)
      }, 'snapshot'),
    revocationsVersion: () => versionIn(database),
  }
}

export function revocationOf({ kind, id, before, revokedAt }: Row): Revocation {
  return kind === 'token' ? { kind, tokenId: id, revokedAt } : { kind, userId: id, before, revokedAt }
}

function keyOf(what: Revoked): readonly [kind: Row['kind'], id: string] {
  return 'tokenId' in what ? ['token', what.tokenId] : ['user', what.userId]
}
