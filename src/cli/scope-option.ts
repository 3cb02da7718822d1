/** The option `--scope`: in which upstream's scope threads are that a command works on. */
import { atScope, scopeFault } from '../tools/import-export/scopes.ts'
import { mountsOf, scopesIn, type Mount } from '../config/mounts.ts'
import type { Config } from '../config/schema.ts'
import type { OwnershipStore, ThreadKey } from '../store/port.ts'
import { UsageError } from './command.ts'
import type { Opened } from './on-store.ts'

export const SCOPE_OPTION = { scope: { type: 'string' } } as const

/**
 * Where a command looks that works on many threads: a scope that the configuration has, or that the table has rows of,
 * because its upstream is gone or was given another key.
 * @returns undefined for all scopes
 * @throws UsageError for a scope that neither has
 */
export async function scopeNamed(
  scope: string | undefined,
  { store, prepared }: { readonly store: Pick<OwnershipStore, 'isEmpty'> } & Pick<Opened, 'prepared'>,
): Promise<string | undefined> {
  const fault = scope === undefined ? null : scopeFault(scope, scopesIn(prepared.config))
  if (scope === undefined || fault === null) return scope
  if (!(await store.isEmpty(scope))) return scope
  throw new UsageError(`--scope ${JSON.stringify(scope)}: ${fault}, and the table has no thread of such a one`)
}

/**
 * The one thread that a command works on; without `--scope` it is one of `upstream`.
 * @throws UsageError for a scope that there isn't, and for none where the configuration has no `upstream`
 */
export async function keyNamed(threadId: string, scope: string | undefined, opened: Opened): Promise<ThreadKey> {
  return { scope: (await scopeNamed(scope, opened)) ?? usualScope(opened.prepared.config), threadId }
}

/**
 * The scope of the rows that are taken over without saying theirs. It has to be one that the configuration has: what nobody can
 * reach must not look as if it were in good hands.
 * @returns null where there is no `upstream` and another one was not named: each row has to say its own
 * @throws UsageError for one that the configuration doesn't have
 */
export function importScope(scope: string | undefined, config: Config): string | null {
  const scopes = scopesIn(config)
  if (scope === undefined) return scopes.includes('') ? '' : null
  const fault = scopeFault(scope, scopes)
  if (fault !== null) throw new UsageError(`--scope ${JSON.stringify(scope)}: ${fault}`)
  return scope
}

/**
 * The runtime that is asked for its list of threads: by default the first one.
 * @throws UsageError for an agent, which has no list
 */
export function runtimeNamed(scope: string | undefined, config: Config): Mount {
  const named = importScope(scope, config)
  const mounts = mountsOf(config)
  const mount =
    scope === undefined
      ? mounts.find(({ agentId }) => agentId === null)
      : (mounts.find((one) => one.agentId === null && one.scope === named) ?? mounts.find((one) => one.scope === named))
  if (mount === undefined)
    throw new UsageError('--from-upstream: the configuration has agents alone, and an agent has no list of threads')
  if (mount.agentId !== null)
    throw new UsageError(`--from-upstream: ${mount.place.join('.')} is an agent, and has no list of threads`)
  return mount
}

/** Which of several is meant nobody can know: a wrong guess would change the thread of somebody else. */
function usualScope(config: Config): string {
  const scopes = scopesIn(config)
  if (!scopes.includes('')) throw new UsageError(`--scope KEY is missing: the configuration has ${scopes.join(', ')}`)
  return ''
}

export function threadText({ scope, threadId }: ThreadKey): string {
  return `${threadId}${atScope(scope)}`
}

/** A thread as data: its scope is left out where that is `upstream`. */
export function threadData({ scope, threadId }: ThreadKey): { readonly thread: string; readonly scope?: string } {
  return { thread: threadId, ...(scope === '' ? {} : { scope }) }
}
