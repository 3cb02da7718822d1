/** Stores revocations in the SQLite file of the threads. */
import type { Revocation } from '../../core/decide/credential.ts'
import type { RevocationStore, Revoked } from '../port.ts'
import { sql, type Connection } from './connection.ts'
import type { SqliteFile } from './file.ts'

interface Row {
  readonly kind: 'token' | 'user'
  readonly id: string
  readonly issued_before: number | null
  readonly revoked_at: number
}

// Of two revocations of one user the wider stays; null is wider than any time. Two of one token are equal.
const UPSERT = sql(
  `INSERT INTO revocations (kind, id, issued_before, revoked_at) VALUES (:kind, :id, :before, :revokedAt)
   ON CONFLICT (kind, id) DO UPDATE SET issued_before = excluded.issued_before, revoked_at = excluded.revoked_at
   WHERE issued_before IS NOT NULL AND (excluded.issued_before IS NULL OR excluded.issued_before > issued_before)`,
)
const REMOVE = sql('DELETE FROM revocations WHERE kind = :kind AND id = :id')
const ROWS = 'SELECT kind, id, issued_before, revoked_at FROM revocations'
const ALL = sql<Row>(`${ROWS} ORDER BY kind, id`)
const OF_USER = sql<Row>(`${ROWS} WHERE kind = 'user' AND id = :userId`)
const VERSION = sql<{ value: number }>("SELECT value FROM versions WHERE name = 'revocations'")
const NEXT = sql("UPDATE versions SET value = value + 1 WHERE name = 'revocations'")

/** @param file stays open: the caller that opened it closes it */
export function revocationsIn(file: SqliteFile): RevocationStore {
  return {
    revoke: (revocation) =>
      file.write((database) => {
        const before = revocation.kind === 'token' ? null : revocation.before
        database.run(UPSERT, { ...keyOf(revocation), before, revokedAt: revocation.revokedAt })
        database.run(NEXT)
      }),
    lift: (what) =>
      file.write((database) => {
        const lifted = database.run(REMOVE, keyOf(what)) > 0
        if (lifted) database.run(NEXT)
        return lifted
      }),
    revocations: () => file.read((database) => database.all(ALL).map(revocationOf)),
    revocationsVersion: () =>
      file.read((database) => {
        const row = database.get(VERSION)
        if (row === undefined) throw new Error('the version of the revocations is missing')
        return row.value
      }),
  }
}

export function revocationsOfUser(database: Connection, userId: string): readonly Revocation[] {
  return database.all(OF_USER, { userId }).map(revocationOf)
}

function keyOf(what: Revoked) {
  return 'tokenId' in what ? { kind: 'token', id: what.tokenId } : { kind: 'user', id: what.userId }
}

function revocationOf({ kind, id, issued_before: before, revoked_at: revokedAt }: Row): Revocation {
  return kind === 'token' ? { kind, tokenId: id, revokedAt } : { kind, userId: id, before, revokedAt }
}
