/** Reads the credentials of the admin API, and checks requests for one. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { Sources } from '../../document/sources.ts'

export interface AdminCredentials {
  readonly credentials: () => readonly string[]
}

/** The guessing effort: 32 random characters are more than 128 bits, also as hexadecimal digits. */
const LEAST_LENGTH = 32
const MOST = 2

// Characters allowed as one word of a header. RFC 6750 §2.1 allows fewer; there is no need to refuse the others.
const WORD = /^[\x21-\x7e]+$/

/**
 * Exactly one of the two is configured. A file has the credential, or the old and the new one, each on a line; it is read again
 * for each request, so that it rotates without a restart.
 * @throws Error if none is usable
 */
export function makeAdminCredentials(
  { credential, credentialFile }: { readonly credential?: string | undefined; readonly credentialFile?: string | undefined },
  sources: Sources,
  onFault: (message: string) => void,
): AdminCredentials {
  if ((credential === undefined) === (credentialFile === undefined)) {
    throw new Error('admin needs either credential or credentialFile')
  }
  if (credentialFile === undefined) {
    const fixed = credentialsIn(credential ?? '', 'admin.credential', 1)
    return { credentials: () => fixed }
  }
  const where = `the file of admin.credentialFile, ${credentialFile},`
  let text = textOf(credentialFile, where, sources)
  let good = credentialsIn(text, where, MOST)
  let failing = false
  return {
    credentials() {
      try {
        const now = textOf(credentialFile, where, new Sources())
        failing = false
        if (now === text) return good
        text = now
        good = credentialsIn(now, where, MOST)
      } catch (error) {
        if (!failing) onFault(error instanceof Error ? error.message : String(error))
        // An invalid content was already reported; a missing file is reported once until it is back.
        failing = true
      }
      return good
    },
  }
}

function textOf(file: string, where: string, sources: Sources): string {
  const source = sources.readRotating(file)
  if ('error' in source) throw new Error(`${where} cannot be read`)
  return source.bytes.toString('utf8')
}

function credentialsIn(text: string, where: string, most: number): readonly string[] {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  if (lines.length === 0) throw new Error(`${where} is empty`)
  if (lines.length > most) throw new Error(`${where} has more than ${most === 1 ? 'one line' : `${most} lines`}`)
  if (lines.some((line) => line.length < LEAST_LENGTH)) {
    throw new Error(`${where} has a credential of fewer than ${LEAST_LENGTH} characters: make one with openssl rand -hex 32`)
  }
  if (!lines.every((line) => WORD.test(line))) throw new Error(`${where} has characters that a header cannot carry`)
  return lines
}

export function isAdmitted(lines: readonly string[], credentials: readonly string[]): boolean {
  const [line = ''] = lines
  return lines.length === 1 && line.startsWith('Bearer ') && hasCredential(line.slice('Bearer '.length), credentials)
}

/** In the same time for each wrong one. */
export function hasCredential(text: string, credentials: readonly string[]): boolean {
  const given = digest(text)
  return credentials.map((one) => timingSafeEqual(digest(one), given)).includes(true)
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
