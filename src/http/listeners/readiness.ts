/** Named conditions that the gateway waits for, reported by /readyz. Nothing is forwarded while the transport is unknown. */

export interface Readiness {
  set(name: string, pending: string | null): void
  pending(): ReadonlyMap<string, string>
  note(name: string, text: string | null): void
  notes(): ReadonlyMap<string, string>
}

export interface HeldBack extends Readiness {
  release(): void
}

export function heldBack(readiness: Readiness): HeldBack {
  let held: Map<string, string | null> | null = new Map()
  return {
    ...readiness,
    set(name, pending) {
      if (held === null) readiness.set(name, pending)
      else held.set(name, pending)
    },
    release() {
      const until = held ?? new Map<string, string | null>()
      held = null
      for (const [name, pending] of until) readiness.set(name, pending)
    },
  }
}

/** @param onSet also for conditions that stay as they are */
export function makeReadiness(onSet: (name: string, pending: boolean) => void = () => {}): Readiness {
  const conditions = new Map<string, string>()
  const notes = new Map<string, string>()
  const put = (into: Map<string, string>, name: string, text: string | null): void => {
    if (text === null) into.delete(name)
    else into.set(name, text)
  }
  return {
    set(name, pending) {
      put(conditions, name, pending)
      onSet(name, pending !== null)
    },
    pending: () => conditions,
    note: (name, text) => put(notes, name, text),
    notes: () => notes,
  }
}
