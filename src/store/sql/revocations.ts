/** Revocations of tokens. */
import type { Revocation } from '../../core/decide/credential.ts'
import type { Revoked } from '../port/revocations.ts'
import { sql, type Dialect } from './statement.ts'

export interface Row {
  readonly kind: 'token' | 'user'
  readonly id: string
  readonly before: number | null
  readonly revokedAt: number
}

export function revocationStatements({ revocations, versions }: Dialect) {
  const rows = `SELECT kind, id, issued_before AS before, revoked_at AS "revokedAt" FROM ${revocations}`
  return {
    // The wider of two revocations of a user stays; null is wider than any time. Two of one token are equal.
    upsert:
      sql(`INSERT INTO ${revocations} AS there (kind, id, issued_before, revoked_at) VALUES (:kind, :id, :before, :revokedAt)
      ON CONFLICT (kind, id) DO UPDATE SET issued_before = excluded.issued_before, revoked_at = excluded.revoked_at
      WHERE there.issued_before IS NOT NULL
        AND (excluded.issued_before IS NULL OR excluded.issued_before > there.issued_before)`),
    remove: sql<{ done: 1 }>(`DELETE FROM ${revocations} WHERE kind = :kind AND id = :id RETURNING 1 AS done`),
    // The last statement of its transaction: changes are committed in the order of their numbers.
    next: sql(`UPDATE ${versions} SET value = value + 1 WHERE name = 'revocations'`),
    all: sql<Row>(`${rows} ORDER BY kind, id`),
    ofUser: sql<Row>(`${rows} WHERE kind = 'user' AND id = :userId`),
  }
}

export function valuesOf(revocation: Revocation) {
  const before = revocation.kind === 'token' ? null : revocation.before
  return { ...keyOf(revocation), before, revokedAt: revocation.revokedAt }
}

export function keyOf(what: Revoked): Pick<Row, 'kind' | 'id'> {
  return 'tokenId' in what ? { kind: 'token', id: what.tokenId } : { kind: 'user', id: what.userId }
}

export function revocationOf({ kind, id, before, revokedAt }: Row): Revocation {
  return kind === 'token' ? { kind, tokenId: id, revokedAt } : { kind, userId: id, before, revokedAt }
}
