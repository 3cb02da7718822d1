/** Remembers the upstream and operation of a target: they depend on target and configuration alone. */
import { classifyAt, type RouteDescriptor } from '../../core/route/classify.ts'
import type { Refusal } from '../../core/reasons.ts'
import { QUERY_NAMES } from '../../core/route/routes.ts'
import { findMount, readTarget, type Target } from '../../core/route/target.ts'

interface Mounted {
  readonly publicPath: string
  readonly agentId: string | null
}

export interface CachedTarget<Binding> {
  readonly outcome: 'placed'
  readonly target: Target
  readonly binding: Binding
  readonly segments: readonly string[] | null
  classified(method: string): RouteDescriptor | Refusal
}

/** Callers choose targets, so longer targets are not remembered, nor more than `MOST`. */
const LONGEST = 256
const MOST = 4096

export function makeTargetCache<Binding extends Mounted>(
  bindings: readonly [Binding, ...Binding[]],
): (rawTarget: string) => CachedTarget<Binding> | Refusal {
  const known = new Map<string, CachedTarget<Binding>>()
  const find = (rawTarget: string): CachedTarget<Binding> | Refusal => {
    const target = readTarget(rawTarget, QUERY_NAMES)
    if (target.outcome === 'refused') return target
    const { mount: binding, segments } = findMount(bindings, target) ?? { mount: bindings[0], segments: null }
    const byMethod = new Map<string, RouteDescriptor | Refusal>()
    const classified = (method: string): RouteDescriptor | Refusal => {
      let found = byMethod.get(method)
      if (found === undefined) {
        found = classifyAt(binding, method, segments ?? [], target.query)
        byMethod.set(method, found)
      }
      return found
    }
    return { outcome: 'placed', target, binding, segments, classified }
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
