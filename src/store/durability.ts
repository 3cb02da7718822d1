/**
 * Whether a store's file outlives the container or pod that it is in. With `unknownThread: claim`, a table that is lost
 * gives every old thread to whoever comes first (SECURITY.md, "Mistakes that void everything").
 */
import { readFileSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'

/** What the file goes with, in words for an operator. */
export type Fate = 'the container' | 'the pod' | 'the memory of the machine'

/** The mounts of this process (proc(5), `/proc/pid/mountinfo`); empty where there is no such file. */
export function readMounts(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return ''
  }
}

/**
 * Tells what a file will be lost with.
 * @param file an absolute path; its folder must be there
 * @param mounts the text of a mountinfo file
 * @returns null if it is on a disk or volume, as far as can be seen
 */
export function lostWith(file: string, mounts: string): Fate | null {
  const folder = realpathSync(dirname(file))
  let best: { readonly root: string; readonly at: string; readonly type: string } | undefined
  for (const line of mounts.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const [, , , root = '', at = ''] = before.split(' ').map(unescaped)
    const inside = at === '/' || folder === at || folder.startsWith(`${at}/`)
    // Of two mounts on one place the later one hides the other.
    if (at !== '' && inside && at.length >= (best?.at.length ?? 0)) best = { root, at, type: after.split(' ')[0] ?? '' }
  }
  if (best === undefined) return null
  const emptyDir = best.root.includes('/kubernetes.io~empty-dir/')
  switch (best.type) {
    case 'overlay':
    case 'aufs':
      return 'the container'
    case 'tmpfs':
    case 'ramfs':
      return emptyDir ? 'the pod' : 'the memory of the machine'
    default:
      return emptyDir ? 'the pod' : null
  }
}

/** Space, tab, newline and backslash are octal in mountinfo. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_whole, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}
