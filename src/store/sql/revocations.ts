/** Revocations of tokens. */
import type { Revocation } from '../../core/decide/credential.ts'
import type { RevocationStore, Revoked } from '../port/revocations.ts'
import { all, type Engine, type Work, sql, type Dialect, type Sql } from './statement.ts'

interface Row {
  readonly kind: 'token' | 'user'
  readonly id: string
  readonly before: number | null
  readonly revokedAt: number
}

export function revocationsOfUser(dialect: Dialect): Sql<Row> {
  return sql(`${rowsOf(dialect)} WHERE kind = 'user' AND id = :userId`)
}

export function revocationsIn({ dialect, read, write, requireSame }: Engine): RevocationStore {
  const { revocations, versions, made } = dialect
  // The wider of two revocations of a user stays; null is wider than any time. Two of one token are equal.
  const upsert =
    sql(`INSERT INTO ${revocations} AS there (kind, id, issued_before, revoked_at) VALUES (:kind, :id, :before, :revokedAt)
      ON CONFLICT (kind, id) DO UPDATE SET issued_before = excluded.issued_before, revoked_at = excluded.revoked_at
      WHERE there.issued_before IS NOT NULL
        AND (excluded.issued_before IS NULL OR excluded.issued_before > there.issued_before)`)
  const remove = sql<{ done: 1 }>(`DELETE FROM ${revocations} WHERE kind = :kind AND id = :id RETURNING 1 AS done`)
  // The last statement of its transaction: changes are committed in the order of their numbers.
  const next = sql(`UPDATE ${versions} SET value = value + 1 WHERE name = 'revocations'`)
  const rows = sql<Row>(`${rowsOf(dialect)} ORDER BY kind, id`)
  const version = {
    name: 'revocations-version',
    ...sql<{ value: number; made: number | null }>(`SELECT value, ${made} AS made FROM ${versions} WHERE name = 'revocations'`),
  }
  /** Rejects if another store than the opened one answers: an empty one revokes nothing. */
  function* versionNow(): Work<number> {
    const [row] = yield* all(version)
    requireSame(row?.made ?? null)
    // Both engines make a StoreUnavailable of it, and begin its message.
    if (row === undefined) throw new Error('the version of the revocations is missing')
    return row.value
  }
  return {
    revoke: (revocation) =>
      write('transaction', function* () {
        const before = revocation.kind === 'token' ? null : revocation.before
        yield* all(upsert, { ...keyOf(revocation), before, revokedAt: revocation.revokedAt })
        yield* all(next)
      }),
    lift: (what) =>
      write('transaction', function* () {
        const lifted = (yield* all(remove, { ...keyOf(what) })).length > 0
        if (lifted) yield* all(next)
        return lifted
      }),
    revocations: () =>
      read('snapshot', function* () {
        yield* versionNow()
        return (yield* all(rows)).map(revocationOf)
      }),
    revocationsVersion: () => read('statement', versionNow),
  }
}

function rowsOf({ revocations }: Dialect): string {
  return `SELECT kind, id, issued_before AS before, revoked_at AS "revokedAt" FROM ${revocations}`
}

function keyOf(what: Revoked): Pick<Row, 'kind' | 'id'> {
  return 'tokenId' in what ? { kind: 'token', id: what.tokenId } : { kind: 'user', id: what.userId }
}

export function revocationOf({ kind, id, before, revokedAt }: Row): Revocation {
  return kind === 'token' ? { kind, tokenId: id, revokedAt } : { kind, userId: id, before, revokedAt }
}
