/** The files that a configuration is made of, by what is in them. Workers look whether it still is, and load none of what reads it. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Files, and what was in them. */
export interface KeyFileDigests {
  readonly files: readonly string[]
  readonly digest: string
}

/** True while keys and certificates are what they were when the configuration was checked. */
export function stillHas({ materials: { files, digest } }: { readonly materials: KeyFileDigests }): boolean {
  return digestOf(files) === digest
}

/** Over the names and contents of files, in their order; one that cannot be read counts as such. */
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
