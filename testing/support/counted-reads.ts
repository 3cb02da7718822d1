/** Counts the reads of files by the code under test, whichever module makes them. */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import type { Test } from 'tap'

/** By path. */
export interface CountedReads {
  readonly reads: ReadonlyMap<string, number>
  /** How often the bytes became a text: a parser needs one. */
  readonly decodings: ReadonlyMap<string, number>
}

/**
 * Counts from now to the end of the test.
 * @param folder where the files are
 * @param onRead is called before each read
 */
export function countReads(t: Test, folder: string, onRead: (path: string) => void = () => {}): CountedReads {
  const reads = new Map<string, number>()
  const decodings = new Map<string, number>()
  const { readFileSync } = fs
  const add = (counts: Map<string, number>, path: string): void => void counts.set(path, (counts.get(path) ?? 0) + 1)
  const counting = (...given: Parameters<typeof readFileSync>): string | Buffer => {
    const [path] = given
    if (typeof path !== 'string' || !path.startsWith(folder)) return readFileSync(...given)
    onRead(path)
    add(reads, path)
    const read = readFileSync(...given)
    if (typeof read === 'string') add(decodings, path)
    else {
      const decode = read.toString.bind(read)
      read.toString = (...encoding) => {
        add(decodings, path)
        return decode(...encoding)
      }
    }
    return read
  }
  fs.readFileSync = counting as typeof readFileSync
  syncBuiltinESMExports()
  t.teardown(() => {
    fs.readFileSync = readFileSync
    syncBuiltinESMExports()
  })
  return { reads, decodings }
}
