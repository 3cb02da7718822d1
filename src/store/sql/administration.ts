/** What operators and owners write and read, on either engine. */
import { assignmentIn, importIn, pruningIn, rowsIn } from './rows.ts'
import type { Engine } from './statement.ts'
import { grantsIn } from './grants.ts'
import { observationsIn } from './observations.ts'
import { revocationsIn } from './revocations.ts'
import { usersIn } from './users.ts'

export function administrationIn(engine: Engine) {
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
