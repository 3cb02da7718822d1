/** A process of its own on a store, as the command line is one: does one thing with the thread t1, and ends. */
import { openSqliteStore } from '../../src/store/sqlite/store.ts'

const [file = '', step = ''] = process.argv.slice(2)
const T1 = { scope: '', threadId: 't1' }
const store = await openSqliteStore(file)
switch (step) {
  case 'ungrant':
    await store.ungrant(T1, null, { kind: 'user', id: 'corp:bob' })
    break
  case 'assign':
    await store.assign(T1, 'corp:carol', Date.now())
    break
  case 'transfer':
    await store.transfer('corp:alice', 'corp:carol', 10)
    break
  case 'withhold':
    await store.withhold(T1, Date.now())
    break
  case 'prune':
    await store.prune({ unusedSince: Date.now() + 60_000 }, 10)
    break
  default:
    throw new Error(`no step: ${step}`)
}
await store.close()
