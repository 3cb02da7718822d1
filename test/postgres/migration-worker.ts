/** Brings a database to the schema of this program, as a process of its own; says how far it was before. */
import { migrate } from '../../src/store/postgres/migrations.ts'
import { settingsOf } from '../store/postgres-stores.ts'

const [url = ''] = process.argv.slice(2)
const { applied } = await migrate(settingsOf(url))
process.stdout.write(String(applied))
