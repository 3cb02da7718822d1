/** Detects changed key and certificate files. Workers use it without loading the code that reads a configuration. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

export interface KeyFileDigests {
  readonly files: readonly string[]
  readonly digest: string
}

export function stillHas({ materials: { files, digest } }: { readonly materials: KeyFileDigests }): boolean {
  return digestOf(files) === digest
}

/** Covers the names and contents of files, in order; an unreadable file counts as unreadable. */
export function digestOf(files: readonly string[]): string {
  const hash = createHash('sha256')
  for (const path of files) {
    let content: Buffer | string
    try {
      content = readFileSync(path)
    } catch {
      content = 'unreadable'
    }
    hash.update(createHash('sha256').update(path).digest()).update(createHash('sha256').update(content).digest())
  }
  return hash.digest('hex')
}
