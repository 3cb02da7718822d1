/** What the gateway still waits for, by name: /readyz says it, and nothing is forwarded while the transport is unknown. */

/** Named conditions. */
export interface Readiness {
  /** Notes that something is pending and why, or with null that it no longer is. */
  set(name: string, pending: string | null): void
  pending(): ReadonlyMap<string, string>
  /** Notes what an operator has to see though the gateway is ready, or with null that it is over. */
  note(name: string, text: string | null): void
  notes(): ReadonlyMap<string, string>
}

/** Conditions that show only once they are released. */
export interface HeldBack extends Readiness {
  /** Shows what was set until now, and from now on everything as it is set. */
  release(): void
}

/** Holds back what is set, until it is released. */
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

export function makeReadiness(): Readiness {
  const conditions = new Map<string, string>()
  const notes = new Map<string, string>()
  const put = (into: Map<string, string>, name: string, text: string | null): void => {
    if (text === null) into.delete(name)
    else into.set(name, text)
  }
  return {
    set: (name, pending) => put(conditions, name, pending),
    pending: () => conditions,
    note: (name, text) => put(notes, name, text),
    notes: () => notes,
  }
}
