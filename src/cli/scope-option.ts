/** Reads the option `--scope`: the upstream in whose scope a command works on threads. */
import { scopeFault } from '../tools/import-export/scopes.ts'
import { mountsOf, scopesIn, type Mount } from '../config/mounts.ts'
import type { Config } from '../config/schema.ts'
import type { OwnershipStore } from '../store/port.ts'
import { UsageError } from './command.ts'

/**
 * A scope of the configuration, or one with rows in the table, because its upstream was removed or got another key.
 * @returns undefined for all scopes
 * @throws UsageError for any other scope
 */
export async function existingScope(
  scope: string | undefined,
  config: Config,
  store: Pick<OwnershipStore, 'isEmpty'>,
): Promise<string | undefined> {
  const fault = scope === undefined ? null : scopeFault(scope, scopesIn(config))
  if (scope === undefined || fault === null || !(await store.isEmpty(scope))) return scope
  throw new UsageError(`--scope ${JSON.stringify(scope)}: ${fault}, and the table has no thread of such a one`)
}

/**
 * The scope of imported rows that do not name theirs. The configuration has to have it: an owner that no user can reach must not
 * look valid.
 * @returns null if there is no `upstream` and the option names no other: each row has to name its own
 * @throws UsageError for a scope that the configuration does not have
 */
export function importScope(scope: string | undefined, config: Config): string | null {
  const scopes = scopesIn(config)
  if (scope === undefined) return scopes.includes('') ? '' : null
  const fault = scopeFault(scope, scopes)
  if (fault !== null) throw new UsageError(`--scope ${JSON.stringify(scope)}: ${fault}`)
  return scope
}

/**
 * The runtime whose list of threads is read: by default the first.
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

/** @throws UsageError without `upstream`: a wrong guess would change the thread of another user */
export function usualScope(config: Config): string {
  const scopes = scopesIn(config)
  if (!scopes.includes('')) throw new UsageError(`--scope KEY is missing: the configuration has ${scopes.join(', ')}`)
  return ''
}
