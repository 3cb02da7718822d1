/** A configuration with a store that is there, and the program on it. */
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Changes } from '../../testing/support/configuration.ts'
import type { Store } from '../../src/store/port/store.ts'
import type { ThreadKey } from '../../src/store/port/thread.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { run, type Surroundings } from './in-process.ts'
import type { Ended } from '../../testing/support/decided.ts'
import { configFile } from '../../testing/support/program.ts'

/** What a test of a command works with. */
export interface Deployment {
  /** The configuration. */
  readonly file: string
  readonly folder: string
  /** A connection of the test's own, as a gateway has one. */
  readonly store: Store
  /** Runs a command on the configuration, in this process. */
  readonly command: (...args: readonly string[]) => Promise<Ended>
  /** The same, with what is around it. */
  readonly commandIn: (surroundings: Surroundings, ...args: readonly string[]) => Promise<Ended>
  /** What a command prints, as data. */
  readonly data: (...args: readonly string[]) => Promise<unknown>
}

/** Makes it. */
export async function deployment(t: Test, changes: Changes = {}): Promise<Deployment> {
  const { file, folder } = configFile(t, changes)
  const store = await openSqliteStore(join(folder, 'ownership.db'))
  t.teardown(() => store.close())
  return { file, folder, store, ...commandsOn(t, file) }
}

/** The program on a configuration. */
export function commandsOn(t: Test, file: string): Pick<Deployment, 'command' | 'commandIn' | 'data'> {
  const commandIn = (surroundings: Surroundings, ...args: readonly string[]): Promise<Ended> =>
    run(t, [...args, '--config', file], surroundings)
  const command = (...args: readonly string[]): Promise<Ended> => commandIn({}, ...args)
  const data = async (...args: readonly string[]): Promise<unknown> => JSON.parse((await command(...args, '--json')).stdout)
  return { command, commandIn, data }
}

/** A thread. */
export function key(threadId: string): ThreadKey {
  return { scope: '', threadId }
}

/** Makes somebody the owner of threads, each by a run that is confirmed. */
export async function own(store: Store, userId: string, ...threadIds: readonly string[]): Promise<void> {
  for (const threadId of threadIds) {
    const claim = await store.claim(key(threadId), { userId, agentId: 'default', guest: false, now: Date.now() })
    if (claim.outcome === 'new') await store.settle(key(threadId), userId, claim.registration ?? 0, 'confirmed')
  }
}

/** Whose each thread is, as `thread=user`, with `!` behind a tombstone. */
export async function ownersIn(store: Store): Promise<readonly string[]> {
  const rows = await store.threads({ deleted: 'too' }, null, 1000)
  return rows.map(({ threadId, owner, deletedAt }) => `${threadId}=${owner}${deletedAt === null ? '' : '!'}`)
}
