/** Reads the files of one configuration, each once: the checked bytes are the activated ones (docs/contributing/invariants.md, 8). */
import { createHash } from 'node:crypto'
import { readFileSync, statSync, type BigIntStats } from 'node:fs'
import { resolve } from 'node:path'

/** The file's content, or the system's error code. */
export type Source = { readonly bytes: Buffer } | { readonly error: string }

/** `stat` results by absolute path: they change with the file and its links, and if it is replaced. */
export type FileStates = ReadonlyMap<string, string>

/** SHA-256 by absolute path. */
export type FileHashes = ReadonlyMap<string, string>

/** The files that were read, by absolute path. They may be secret. */
export type HeldFiles = ReadonlyMap<string, Source>

export function areSame(some: FileHashes, others: FileHashes): boolean {
  return some.size === others.size && [...some].every(([path, hash]) => others.get(path) === hash)
}

export class Sources {
  // Private fields are not cloned: a message to another process contains the bytes only where `held` was put into it.
  readonly #held = new Map<string, { readonly source: Source; readonly hash: string }>()
  readonly #states = new Map<string, string>()
  readonly #hashes: Map<string, string>

  /**
   * @param hashes of files that another process has read and checked
   * @param held what it read of them; others are read here
   */
  constructor(hashes: FileHashes = new Map(), held: HeldFiles = new Map()) {
    this.#hashes = new Map(hashes)
    for (const [path, source] of held) this.#held.set(path, { source, hash: hashOf(source) })
  }

  /** @throws Error if the file had other content when it was read before, here or by the other process */
  read(file: string): Source {
    const path = resolve(file)
    // Before the file is read, so that a later change shows.
    if (!this.#states.has(path)) this.#states.set(path, stateOf(path))
    const { source, hash } = this.#readOnce(path)
    const known = this.#hashes.get(path)
    if (known === undefined) this.#hashes.set(path, hash)
    else if (known !== hash) throw new Error('keys or certificates have changed since the configuration was checked')
    return source
  }

  /** For a file that may rotate at any time, because it is read again for each use. */
  readRotating(file: string): Source {
    return this.#readOnce(resolve(file)).source
  }

  /** @throws Error as `read`, or for a file that cannot be read */
  text(file: string): string {
    const source = this.read(file)
    if ('error' in source) throw new Error(`${file} ${unreadable(source.error).message}`)
    return source.bytes.toString('utf8')
  }

  /** Drops the bytes, which may be secret. A later `read` compares the file with its hash. */
  release(): void {
    this.#held.clear()
  }

  /** For another process, until the release. */
  get held(): HeldFiles {
    return new Map([...this.#held].map(([path, { source }]) => [path, source]))
  }

  get states(): FileStates {
    return this.#states
  }

  get hashes(): FileHashes {
    return this.#hashes
  }

  /** True if no file has changed since it was read: all of them are of one moment. */
  isCurrent(): boolean {
    // A file that was touched or copied may have the same content.
    const isSame = (path: string): boolean => readNow(path).hash === this.#hashes.get(path)
    return [...this.#states].every(([path, state]) => stateOf(path) === state || isSame(path))
  }

  #readOnce(path: string): { readonly source: Source; readonly hash: string } {
    let held = this.#held.get(path)
    if (held === undefined) this.#held.set(path, (held = readNow(path)))
    return held
  }
}

function readNow(path: string): { readonly source: Source; readonly hash: string } {
  const source = sourceAt(path)
  return { source, hash: hashOf(source) }
}

function sourceAt(path: string): Source {
  try {
    return { bytes: readFileSync(path) }
  } catch (error) {
    return { error: error instanceof Error && 'code' in error ? String(error.code) : 'unknown' }
  }
}

function hashOf(source: Source): string {
  return 'error' in source ? source.error : createHash('sha256').update(source.bytes).digest('hex')
}

function stateOf(path: string): string {
  try {
    return stateIn(statSync(path, { bigint: true }))
  } catch {
    return ABSENT
  }
}

/** Says why a file could not be read, and what to do. @param code the system's error code */
export function unreadable(code: string): { readonly message: string; readonly hint: string } {
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return { message: 'does not exist', hint: 'check the path' }
    case 'EACCES':
    case 'EPERM':
      return { message: 'cannot be read: permission denied', hint: 'let the user of this program read it' }
    case 'EISDIR':
      return { message: 'is a folder', hint: 'name a file' }
    default:
      return { message: `cannot be read (${code})`, hint: 'check the path and its permissions' }
  }
}

export const ABSENT = ''

export function stateIn({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
}
