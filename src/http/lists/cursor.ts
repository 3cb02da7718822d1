/** Seals list cursors by AES-256-GCM, bound to upstream, user and query: no caller can read, forge or borrow one. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import type { Place } from '../../core/wire/thread-page.ts'

const IV_BYTES = 12
const TAG_BYTES = 16
const BLOCK_BYTES = 128

export interface CursorSeal {
  seal(place: Place, bound: readonly unknown[]): string
  open(cursor: string, bound: readonly unknown[]): Place | null
}

/**
 * @param secret shared by all processes on one store
 * @param scope the upstream's: a cursor is valid only in its lists
 */
export function makeCursorSeal(secret: Uint8Array, scope: string): CursorSeal {
  // The cursors of the first upstream are older than the scopes of others.
  const bindingOf = (bound: readonly unknown[]): Buffer => associated(scope === '' ? bound : [scope, bound])
  const key = createHash('sha256').update('threadwarden list cursor\0').update(secret).digest()
  return {
    seal(place, bound) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(bindingOf(bound))
      const sealed = Buffer.concat([
        cipher.update(padded(JSON.stringify([place.page, place.offset, ...(place.between ?? [])]))),
        cipher.final(),
      ])
      return Buffer.concat([iv, sealed, cipher.getAuthTag()]).toString('base64url')
    },
    open(cursor, bound) {
      const bytes = Buffer.from(cursor, 'base64url')
      if (bytes.length <= IV_BYTES + TAG_BYTES || bytes.toString('base64url') !== cursor) return null
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES)).setAAD(bindingOf(bound))
        decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
        const text = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8')
        const [page, offset, last, next] = JSON.parse(text) as [string | null, number, string?, string?]
        return { page, offset, ...(last === undefined || next === undefined ? {} : { between: [last, next] }) }
      } catch {
        return null
      }
    },
  }
}

/** Pads to whole blocks: otherwise the length of a cursor would reveal how many threads of others come before its place. */
function padded(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8')
  return Buffer.concat([bytes, Buffer.alloc(BLOCK_BYTES - (bytes.length % BLOCK_BYTES), ' ')])
}

function associated(bound: readonly unknown[]): Buffer {
  return Buffer.from(JSON.stringify(bound), 'utf8')
}
