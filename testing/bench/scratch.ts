/** A folder for what a measurement makes. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** It. */
export interface Scratch {
  readonly folder: string
  /** Takes it away, or says where it is kept. */
  remove(): void
}

/**
 * Makes it. It goes with the process at the latest.
 * @param keep true to leave it
 */
export function makeScratch(keep: boolean): Scratch {
  const folder = mkdtempSync(join(tmpdir(), 'threadwarden-bench-'))
  const clear = (): void => rmSync(folder, { recursive: true, force: true })
  if (!keep) process.once('exit', clear)
  // Whoever loses patience with it is not left with gigabytes.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  return { folder, remove: keep ? () => process.stderr.write(`kept: ${folder}\n`) : clear }
}
