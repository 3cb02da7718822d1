/** What the gateway still waits for, by name: /readyz says it, and nothing is forwarded while the transport is unknown. */

/** Named conditions. */
export interface Readiness {
  /** Notes that something is pending and why, or with null that it no longer is. */
  set(name: string, pending: string | null): void
  /** Everything that is pending now. */
  pending(): ReadonlyMap<string, string>
}

/** Starts with nothing pending. */
export function makeReadiness(): Readiness {
  const conditions = new Map<string, string>()
  return {
    set(name, pending) {
      if (pending === null) conditions.delete(name)
      else conditions.set(name, pending)
    },
    pending: () => conditions,
  }
}
