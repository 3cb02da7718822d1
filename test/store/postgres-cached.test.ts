/**
 * With its cache, which is so small here that it forgets all the time, the PostgreSQL store keeps what of the contract it has
 * to do with.
 */
import t from 'tap'
import { startPostgres } from '../../testing/support/postgres.ts'
import { assignmentContract } from './contract/assignment.ts'
import { claimContract } from './contract/claims.ts'
import { grantContract } from './contract/grants.ts'
import { guestContract } from './contract/guests.ts'
import { identityContract } from './contract/identity.ts'
import { invalidationContract } from './contract/invalidations.ts'
import { userContract } from './contract/users.ts'
import { accessContract } from './contract/access.ts'
import { tombstoneContract } from './contract/tombstones.ts'
import { holdsFor } from './contract/under-test.ts'
import { openStoreOn, settingsOf } from './postgres-stores.ts'

const { url } = await startPostgres(t)
let schemas = 0

const holds = holdsFor('PostgreSQL with a cache', async (test) => {
  const settings = settingsOf(url, { schema: `test_${(schemas += 1)}` })
  const connect = () => openStoreOn(test, settings, { cache: 3 })
  return { store: await connect(), connect }
})
for (const part of [
  assignmentContract,
  claimContract,
  grantContract,
  guestContract,
  identityContract,
  invalidationContract,
  userContract,
  accessContract,
  tombstoneContract,
]) {
  part(holds)
}
