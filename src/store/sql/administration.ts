/** What operators and owners write and read, on either engine. */
import type { AssignmentStore, PruneStore, RowStore, UserStore, ImportStore } from '../port/administration.ts'
import type { GrantStore } from '../port/grants.ts'
import type { ObservationStore } from '../port/observations.ts'
import type { RevocationStore } from '../port/revocations.ts'
import { assignmentIn, importIn, pruningIn, rowsIn } from './rows.ts'
import type { Engine } from './statement.ts'
import { grantsIn } from './grants.ts'
import { observationsIn } from './observations.ts'
import { revocationsIn } from './revocations.ts'
import { usersIn } from './users.ts'

type Administration = RowStore &
  AssignmentStore &
  PruneStore &
  UserStore &
  GrantStore &
  ImportStore &
  ObservationStore &
  RevocationStore

export function administrationIn(engine: Engine): Administration {
  return {
    ...rowsIn(engine),
    ...assignmentIn(engine),
    ...pruningIn(engine),
    ...usersIn(engine),
    ...grantsIn(engine),
    ...importIn(engine),
    ...observationsIn(engine),
    ...revocationsIn(engine),
  }
}
