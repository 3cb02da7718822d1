/** Whether a store's file outlives its container: lost threads can be claimed (SECURITY.md, "Mistakes that void everything"). */
import { readFileSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'

const UNNAMED_VOLUME = /\/io\.containerd\.grpc\.v1\.cri\/containers\/[^/]+\/volumes\/|\/volumes\/[0-9a-f]{64}\/_data(?:\/|$)/

export type Fate = 'the container' | 'the pod' | 'the memory of the machine'

/** The text of `/proc/pid/mountinfo` (proc(5)); empty where that file does not exist. */
export function readMounts(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return ''
  }
}

/** `file` is an absolute path in an existing folder. Null if it is on a disk or volume, as far as can be seen. */
export function lostWith(file: string, mounts: string): Fate | null {
  const folder = realpathSync(dirname(file))
  let best: { readonly root: string; readonly at: string; readonly type: string } | undefined
  for (const line of mounts.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const [, , , root = '', at = ''] = before.split(' ').map(unescaped)
    const inside = at === '/' || folder === at || folder.startsWith(`${at}/`)
    // Of two mounts at one place, the later hides the earlier.
    if (at !== '' && inside && at.length >= (best?.at.length ?? 0)) best = { root, at, type: after.split(' ')[0] ?? '' }
  }
  if (best === undefined) return null
  const emptyDir = best.root.includes('/kubernetes.io~empty-dir/')
  // What a container runtime made for a VOLUME of the image, or for -v without a name.
  if (UNNAMED_VOLUME.test(best.root)) return 'the container'
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

/** mountinfo writes space, tab, newline and backslash in octal. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_whole, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}
