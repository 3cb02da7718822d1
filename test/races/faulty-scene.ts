/** Gateways with a thread that alice owns and bob does not, whose store may fail. */
import type { Test } from 'tap'
import { until } from '../../testing/support/until.ts'
import { askAs } from '../../testing/races/crowd.ts'
import { prepareSite, readiness, ready, type Gateway } from '../../testing/races/gateways.ts'
import { startLedger } from '../../testing/races/ledger.ts'
import { makeMoments } from '../../testing/races/moments.ts'
import { outageFaults, recoveryFaults, type Left, type OutageParts } from '../../testing/races/outage.ts'
import type { StoreAddress } from '../../testing/races/places.ts'

/** What a test does with them. */
export interface FaultyScene extends OutageParts {
  /** The only one of them. */
  readonly gateway: Gateway
  /** Waits until /readyz names the store, and says what is not as it should be then. */
  readonly failing: (left: Left) => Promise<readonly string[]>
  /** Waits until the gateway is ready again, by itself, and says what is not as it should be then. */
  readonly recovered: () => Promise<readonly string[]>
}

/** The thread that alice owns, where a store does not begin with one of hers. */
export const MINE = 'mine'

/**
 * Starts one.
 * @param thread a thread of alice's that is in the store already; by default she begins one
 * @param user the id of the user that the gateway runs as, by default that of this process
 */
export async function faultyScene(
  t: Test,
  address: StoreAddress,
  { thread, user }: { readonly thread?: string; readonly user?: number | undefined } = {},
): Promise<FaultyScene> {
  const moments = makeMoments()
  const { random } = Math
  const ledger = await startLedger(moments)
  t.teardown(() => ledger.close())
  const site = prepareSite(t, address, ledger.url, user)
  const gateway = await site.start()
  const { tokenOf } = site
  if (thread === undefined) {
    await ready(gateway)
    t.equal((await askAs({ tokenOf, moments, random }, gateway.base, MINE, 'alice', 'started')).status, 200)
  }
  const who = { thread: thread ?? MINE, owner: 'alice', stranger: 'bob' }
  const parts: OutageParts = { gateways: [gateway], ledger, tokenOf, moments, random, ...who }
  return {
    ...parts,
    gateway,
    failing: async (left) => {
      await until(async () => (await readiness(gateway)) === 503)
      return outageFaults(parts, left)
    },
    recovered: async () => {
      await ready(gateway)
      return recoveryFaults(parts)
    },
  }
}
