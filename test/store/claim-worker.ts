/** A process of its own that claims threads: opens the store, says so, and claims when it is told to. */
import { openSqliteStore } from '../../src/store/sqlite/store.ts'

const [file = '', userId = '', count = '0'] = process.argv.slice(2)
const store = await openSqliteStore(file)
process.on('message', () => void claimAll())
process.send?.('open')

async function claimAll(): Promise<void> {
  const outcomes: string[] = []
  for (let at = 0; at < Number(count); at += 1) {
    const { outcome } = await store.claim({ scope: '', threadId: `t-${at}` }, { userId, agentId: 'agent', guest: false, now: at })
    outcomes.push(outcome)
  }
  await store.close()
  // The channel may close only when the answer is through.
  process.send?.(outcomes, () => process.disconnect())
}
