/** The active revocations, reloaded soon after a change. If the store fails, the last ones stay: a fault must restore no token. */
import type { Revocation } from '../core/decide/credential.ts'
import type { RevocationList, RevocationStore } from './port/revocations.ts'

export interface RevocationListOptions {
  /** Milliseconds between two version checks; 500 by default. */
  readonly interval?: number
  /** Gets every list that differs from the previous one, except the first. */
  readonly onChange?: (revocations: readonly Revocation[]) => void
  /** Gets the first failure of each series of failed checks. */
  readonly onFailure?: (error: unknown) => void
}

const INTERVAL_MS = 500

/** @throws StoreUnavailable: a gateway that knows no revocations must not start */
export async function makeRevocationList(
  store: Pick<RevocationStore, 'revocations' | 'revocationsVersion'>,
  { interval = INTERVAL_MS, onChange = () => {}, onFailure = () => {} }: RevocationListOptions = {},
): Promise<RevocationList> {
  // The version comes first: a change between the two queries is read again at the next check, never missed.
  const read = async () => ({ version: await store.revocationsVersion(), index: indexOf(await store.revocations()) })
  let { version, index } = await read()
  let stopped = false
  let failing = false

  const refresh = async (): Promise<void> => {
    const next = await read()
    const changed = next.version !== version
    ;({ version, index } = next)
    if (changed && !stopped) onChange(index.all)
  }
  const refreshIfChanged = async (): Promise<void> => {
    if ((await store.revocationsVersion()) !== version) await refresh()
  }
  // The checks run in sequence: an older answer must not replace a newer one.
  let last: Promise<void> = Promise.resolve()
  const queue = (check: () => Promise<void>): Promise<void> => {
    const mine = last.then(check)
    last = mine.catch(() => {})
    return mine
  }
  const watch = async (): Promise<void> => {
    try {
      await queue(refreshIfChanged)
      failing = false
    } catch (error) {
      if (!failing && !stopped) onFailure(error)
      failing = true
    }
    if (!stopped) timer = setTimeout(() => void watch(), interval).unref()
  }
  let timer = setTimeout(() => void watch(), interval).unref()

  return {
    current: () => index.all,
    isRevoked(userId, { tokenId, issuedAt }) {
      if (tokenId !== undefined && index.tokens.has(tokenId)) return true
      const before = index.users.get(userId)
      if (before === undefined) return false
      // A token without an issue time may be older than that time. No token is issued after all times.
      return before === Infinity || issuedAt === undefined || issuedAt < before
    },
    reload: () => queue(refresh),
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

interface Index {
  readonly all: readonly Revocation[]
  readonly tokens: ReadonlySet<string>
  /** The user's tokens issued before this time are revoked; infinite where all are. */
  readonly users: ReadonlyMap<string, number>
}

function indexOf(all: readonly Revocation[]): Index {
  const tokens = new Set<string>()
  const users = new Map<string, number>()
  for (const revocation of all) {
    if (revocation.kind === 'token') tokens.add(revocation.tokenId)
    else users.set(revocation.userId, Math.max(revocation.before ?? Infinity, users.get(revocation.userId) ?? -Infinity))
  }
  return { all, tokens, users }
}
