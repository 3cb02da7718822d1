/** A store whose operations are measured: those of requests, by name. Operations of the command line are not. */
import type { StoreMetrics } from '../observe/metrics.ts'
import type { Store } from '../store/port/store.ts'

/** The labels are part of the metric's interface, and stay when a method is renamed. */
const OPERATIONS = {
  accessTo: 'access',
  accessToSeveral: 'access',
  accessOfReader: 'access',
  claim: 'claim',
  noteWrite: 'claim',
  settle: 'settle',
  rename: 'change',
  archive: 'change',
  beginDeletion: 'delete',
  endDeletion: 'delete',
  bury: 'delete',
  listed: 'list',
  grants: 'grant',
  grant: 'grant',
  ungrant: 'grant',
  observe: 'observe',
  revoke: 'revocation',
  lift: 'revocation',
  revocations: 'revocation',
  revocationsVersion: 'revocation',
  unconfirmed: 'unconfirmed',
} as const satisfies Partial<Record<keyof Store, string>>

export function measuredStore(store: Store, engine: 'sqlite' | 'postgres', metrics: StoreMetrics): Store {
  const measured = Object.entries(OPERATIONS).map(([method, operation]): [string, unknown] => {
    const call = store[method as keyof typeof OPERATIONS] as (...values: unknown[]) => unknown
    return [method, metrics.timed(operation, engine, call)]
  })
  return { ...store, ...Object.fromEntries(measured) }
}
