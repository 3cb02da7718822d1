/** The whole store. Methods are atomic across processes unless stated. Failures throw StoreUnavailable: 503, never access. */
import type { AccessInvalidations, AccessStore } from './access.ts'
import type { AssignmentStore, PruneStore, RowStore, UserStore, ImportStore } from './administration.ts'
import type { ClaimStore, OwnerChanges } from './claims.ts'
import type { GrantStore } from './grants.ts'
import type { ListStore } from './lists.ts'
import type { ObservationStore } from './observations.ts'
import type { RevocationStore } from './revocations.ts'
import type { StoreState } from './state.ts'

export type Store = AccessStore &
  ClaimStore &
  OwnerChanges &
  ListStore &
  GrantStore &
  ObservationStore &
  RevocationStore &
  RowStore &
  AssignmentStore &
  PruneStore &
  UserStore &
  ImportStore &
  AccessInvalidations &
  StoreState
