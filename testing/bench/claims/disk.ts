/** How long the disk takes to confirm a write: the least that a durable claim costs. */
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { median } from '../requests/measuring.ts'

const WRITES = 50

/** What SQLite writes for a claim: pages of tables, of their indexes, and of the invalidations. */
const BYTES = 7 * 4096

/** Median of some writes at the end of a file of this folder, each with its fsync, in microseconds. */
export function syncTime(folder: string): number {
  const file = join(folder, 'sync')
  const fd = openSync(file, 'w')
  try {
    const page = Buffer.alloc(BYTES, 1)
    const times = Array.from({ length: WRITES }, () => {
      const before = performance.now()
      writeSync(fd, page)
      fsyncSync(fd)
      return 1000 * (performance.now() - before)
    })
    return median(times)
  } finally {
    closeSync(fd)
    rmSync(file)
  }
}
