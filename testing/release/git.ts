/** Git, as the release asks it. */
import { spawnSync } from 'node:child_process'

/** What Git prints; undefined if it fails. */
export function git(folder: string, ...args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync('git', ['-C', folder, ...args], { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  return status === 0 ? stdout.trimEnd() : undefined
}
