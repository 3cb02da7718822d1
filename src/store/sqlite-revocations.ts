/** Revocations in SQLite, in the same file as the threads. */
import type { Revocation } from '../core/credential.ts'
import type { RevocationStore, Revoked } from './port.ts'
import type { SqliteFile } from './sqlite-file.ts'

interface Row {
  readonly kind: 'token' | 'user'
  readonly id: string
  readonly issued_before: number | null
  readonly revoked_at: number
}

/**
 * The revocations of an open file.
 * @param file it stays open: whoever opened it closes it
 */
export function revocationsIn(file: SqliteFile): RevocationStore {
  const { database } = file
  // Of two about one user the wider stays: null is wider than any time. One about a token is as wide as another.
  const upsert = database.prepare<[string, string, number | null, number]>(
    `INSERT INTO revocations (kind, id, issued_before, revoked_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (kind, id) DO UPDATE SET issued_before = excluded.issued_before, revoked_at = excluded.revoked_at
     WHERE issued_before IS NOT NULL AND (excluded.issued_before IS NULL OR excluded.issued_before > issued_before)`,
  )
  const remove = database.prepare<[string, string]>('DELETE FROM revocations WHERE kind = ? AND id = ?')
  const all = database.prepare<[], Row>('SELECT kind, id, issued_before, revoked_at FROM revocations ORDER BY kind, id')
  const version = database.prepare<[], { value: number }>("SELECT value FROM versions WHERE name = 'revocations'")
  const next = database.prepare<[]>("UPDATE versions SET value = value + 1 WHERE name = 'revocations'")

  return {
    revoke: (revocation) =>
      file.guardLocked(() => {
        const before = revocation.kind === 'token' ? null : revocation.before
        upsert.run(...keyOf(revocation), before, revocation.revokedAt)
        next.run()
      }),
    lift: (what) =>
      file.guardLocked(() => {
        const lifted = remove.run(...keyOf(what)).changes > 0
        if (lifted) next.run()
        return lifted
      }),
    revocations: () => file.guard(() => all.all().map(revocationOf)),
    revocationsVersion: () =>
      file.guard(() => {
        const row = version.get()
        if (row === undefined) throw new Error('the version of the revocations vanished')
        return row.value
      }),
  }
}

function keyOf(what: Revoked): [string, string] {
  return 'tokenId' in what ? ['token', what.tokenId] : ['user', what.userId]
}

function revocationOf({ kind, id, issued_before: before, revoked_at: revokedAt }: Row): Revocation {
  return kind === 'token' ? { kind, tokenId: id, revokedAt } : { kind, userId: id, before, revokedAt }
}
