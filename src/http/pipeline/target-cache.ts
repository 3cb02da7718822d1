/**
 * What targets come to: under which upstream one lies, and what is asked there by which method. It follows from the target and
 * the configuration alone, and a chat asks for the same few again and again, so it is remembered.
 */
import { classifyAt, type RouteDescriptor } from '../../core/route/classify.ts'
import type { Refusal } from '../../core/reasons.ts'
import { QUERY_NAMES } from '../../core/route/routes.ts'
import { findMount, readTarget, type Target } from '../../core/route/target.ts'

/** What a place has to say of its upstream. */
interface Mounted {
  readonly publicPath: string
  readonly agentId: string | null
}

export interface CachedTarget<Mount> {
  readonly outcome: 'placed'
  readonly target: Target
  /** The first upstream, where it lies under none. */
  readonly mount: Mount
  /** Below the mount's public path; null outside all of them. */
  readonly segments: readonly string[] | null
  /** What is asked there by a method. */
  classified(method: string): RouteDescriptor | Refusal
}

/** Longer ones are not remembered, nor more than so many: callers choose them. */
const LONGEST = 256
const MOST = 4096

/** Makes what finds the places of a configuration. */
export function makeTargetCache<Mount extends Mounted>(
  mounts: readonly [Mount, ...Mount[]],
): (rawTarget: string) => CachedTarget<Mount> | Refusal {
  const known = new Map<string, CachedTarget<Mount>>()
  const find = (rawTarget: string): CachedTarget<Mount> | Refusal => {
    const target = readTarget(rawTarget, QUERY_NAMES)
    if (target.outcome === 'refused') return target
    const { mount, segments } = findMount(mounts, target) ?? { mount: mounts[0], segments: null }
    const byMethod = new Map<string, RouteDescriptor | Refusal>()
    const classified = (method: string): RouteDescriptor | Refusal => {
      let found = byMethod.get(method)
      if (found === undefined) {
        found = classifyAt(mount, method, segments ?? [], target.query)
        byMethod.set(method, found)
      }
      return found
    }
    return { outcome: 'placed', target, mount, segments, classified }
  }
  return (rawTarget) => {
    const place = known.get(rawTarget)
    if (place !== undefined) return place
    const found = find(rawTarget)
    if (found.outcome === 'refused' || rawTarget.length > LONGEST) return found
    if (known.size >= MOST) known.clear()
    known.set(rawTarget, found)
    return found
  }
}
