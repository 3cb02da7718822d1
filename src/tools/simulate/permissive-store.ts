/** A store for a request that is only explained: every change succeeds, and nothing is kept. */
import type { OwnerRecord } from '../../core/decide/decide.ts'
import type { RequestStore } from '../../snapshot/assemble-pipeline.ts'

/** @param record of the thread that the request addresses */
export function permissiveStore(record: OwnerRecord): RequestStore {
  const owner = record?.owner ?? ''
  const times = { createdAt: 0, lastUsedAt: 0, deletedAt: null }
  return {
    claim: async () => ({ outcome: 'own', registration: null }),
    settle: async () => false,
    noteWrite: async () => {},
    beginDeletion: async () => 'explained',
    endDeletion: async () => true,
    rename: async () => true,
    archive: async () => true,
    observe: async () => {},
    listed: async () => [],
    thread: async (key) => ({
      row: { ...key, ...times, owner, agentId: '', name: null, archived: false, provisional: false },
      grants: [],
      runners: [],
    }),
    grants: async () => [],
    grant: async () => 'done',
    ungrant: async () => 'done',
  }
}
