/** Two gateways over one PostgreSQL database, before one upstream: a change is made by one, and looked for on the other. */
import type { Test } from 'tap'
import type { Store } from '../../src/store/port/store.ts'
import { openStoreOn, settingsOf } from '../store/postgres-stores.ts'
import { call, type Reply } from '../../testing/support/client.ts'
import { gateBefore, gated, type GatedUpstream } from '../../testing/support/gated.ts'
import type { TestGateway } from '../../testing/support/gateway.ts'
import { startPostgres, type TestDatabase } from '../../testing/support/postgres.ts'
import { OPERATOR, OWNERS_SHARE } from '../../testing/support/sharing.ts'
import { until } from '../../testing/support/until.ts'
import { ANSWERS, callersOn, type Callers } from './callers.ts'

/** The thread of most tests. */
export const KEY = { scope: '', threadId: 't1' }

/** One of the gateways. */
export interface Replica extends Callers {
  readonly gateway: TestGateway
  /** Asks its admin API. */
  readonly operate: (path: string, body: unknown, method?: string) => Promise<Reply>
}

/** Everything. */
export interface Replicas extends GatedUpstream {
  readonly a: Replica
  readonly b: Replica
  readonly database: TestDatabase
  /** What another process has on the same database, as the command line does. */
  readonly store: Store
  /** Waits until b answers for t1, which is alice's, from what it remembers. */
  readonly warm: () => Promise<void>
}

/** What differs. */
export interface ReplicasOptions {
  readonly limits?: object
  readonly config?: object
  /** The URL by which b reaches the database that is at this one. */
  readonly way?: (url: string) => Promise<string>
}

/** Starts them. */
export async function replicas(
  t: Test,
  { limits = {}, config = {}, way = async (url) => url }: ReplicasOptions = {},
): Promise<Replicas> {
  const database = await startPostgres(t)
  const options = (store: string) => ({
    policy: OWNERS_SHARE,
    config: { ...config, ownership: { store }, limits, admin: { port: 0, credential: OPERATOR } },
  })
  const first = await gated(t, ANSWERS, options(database.url))
  const { signer, upstream, alice } = first
  const second = await gateBefore(t, upstream.url, { ...options(await way(database.url)), signer })
  const b = replicaOn(t, second.gateway)
  const give = (owner: string): Promise<unknown> =>
    database.admin("UPDATE threadwarden.threads SET user_id = $1 WHERE thread_id = 't1'", [owner])
  return {
    ...first,
    a: replicaOn(t, first.gateway),
    b,
    database,
    store: await openStoreOn(t, settingsOf(database.url)),
    // The row is changed past every store, so that nobody is told: who is still let in was remembered.
    async warm() {
      await until(async () => {
        await give('corp:alice')
        await b.reads(alice)
        await give('corp:nobody')
        return (await b.reads(alice)) === 200
      })
      await give('corp:alice')
    },
  }
}

function replicaOn(t: Test, gateway: TestGateway): Replica {
  return {
    ...callersOn(t, gateway.url),
    gateway,
    operate: (path, body, method = 'POST') =>
      call(`${gateway.adminUrl}${path}`, { token: OPERATOR, transport: 'multi-route', body, method }),
  }
}
