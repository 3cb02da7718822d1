/** The PostgreSQL store keeps the contract of every store. */
import t from 'tap'
import { startPostgres } from '../../testing/support/postgres.ts'
import { runsOf } from '../../testing/support/sample.ts'
import { storeContract } from './contract/contract.ts'
import { openStoreOn, settingsOf } from './postgres-stores.ts'

const { url } = await startPostgres(t)
let schemas = 0

storeContract(
  'PostgreSQL',
  async (test) => {
    // A schema takes less time than a database.
    const settings = settingsOf(url, { schema: `test_${(schemas += 1)}` })
    const connect = () => openStoreOn(test, settings)
    return { store: await connect(), connect }
  },
  runsOf(80, 4),
)
