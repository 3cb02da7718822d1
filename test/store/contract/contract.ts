/**
 * What the gateway rests on in every store, whichever database is behind it (docs/explanation/ownership.md; src/store/port/). A store's own
 * test file hands in a factory and runs all of this.
 */
import { administrationContract } from './administration.ts'
import { assignmentContract } from './assignment.ts'
import { claimContract } from './claims.ts'
import { failureContract } from './failures.ts'
import { grantContract } from './grants.ts'
import { guestContract } from './guests.ts'
import { historyContract } from './histories.ts'
import { identityContract } from './identity.ts'
import { importContract } from './imports.ts'
import { listContract } from './lists.ts'
import { invalidationContract } from './invalidations.ts'
import { noteContract } from './notes.ts'
import { observationContract } from './observations.ts'
import { userContract } from './users.ts'
import { pruneContract } from './prune.ts'
import { releaseContract } from './releases.ts'
import { revocationContract } from './revocations.ts'
import { accessContract } from './access.ts'
import { tombstoneContract } from './tombstones.ts'
import { holdsFor, type Open } from './under-test.ts'

const PARTS = [
  claimContract,
  releaseContract,
  tombstoneContract,
  guestContract,
  identityContract,
  accessContract,
  noteContract,
  listContract,
  grantContract,
  observationContract,
  importContract,
  assignmentContract,
  userContract,
  pruneContract,
  administrationContract,
  invalidationContract,
  revocationContract,
  failureContract,
]

/**
 * Runs the contract against a store.
 * @param name of the store, for the names of the tests
 * @param histories how many are made up
 */
export function storeContract(name: string, open: Open, histories: number): void {
  const holds = holdsFor(name, open)
  for (const part of PARTS) part(holds)
  historyContract(holds, histories)
}
