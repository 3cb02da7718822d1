/** What operators and owners write and read, on either engine. */
import type { AssignmentStore, PruneStore, RowStore, UserStore } from '../port/administration.ts'
import type { GrantStore } from '../port/grants.ts'
import type { ImportStore } from '../port/import.ts'
import type { ObservationStore } from '../port/observations.ts'
import type { RevocationStore } from '../port/revocations.ts'
import { assignmentIn } from './assignment.ts'
import type { Engine } from './engine.ts'
import { grantsIn } from './grants.ts'
import { importIn } from './import.ts'
import { observationsIn } from './observations.ts'
import { pruningIn } from './prune.ts'
import { revocationsIn } from './revocations.ts'
import { rowsIn } from './rows.ts'
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
