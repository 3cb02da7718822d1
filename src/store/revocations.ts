/**
 * The active revocations: read at start, and again soon after any process has changed them. A store that fails
 * leaves the last known ones active, because nothing that was revoked may come back by a fault.
 */
import type { Credential, Revocation } from '../core/decide/credential.ts'
import type { RevocationList, RevocationStore } from './port.ts'

/** How the list is kept up to date. */
export interface RevocationListOptions {
  /** Milliseconds between two looks at the version, by default 500. */
  readonly interval?: number
  /** Gets every list that differs from the one before; not the first. */
  readonly onChange?: (revocations: readonly Revocation[]) => void
  /** Gets the first failure of each series of failed looks. */
  readonly onFailure?: (error: unknown) => void
}

const INTERVAL_MS = 500

/**
 * Reads the revocations and goes on watching them.
 * @throws StoreUnavailable if the store does not answer: a gateway that knows no revocations may not start
 */
export async function makeRevocationList(
  store: Pick<RevocationStore, 'revocations' | 'revocationsVersion'>,
  { interval = INTERVAL_MS, onChange = () => {}, onFailure = () => {} }: RevocationListOptions = {},
): Promise<RevocationList> {
  // The version comes first: what changes between the two questions is read again at the next look, never missed.
  const read = async () => ({ version: await store.revocationsVersion(), index: indexOf(await store.revocations()) })
  let { version, index } = await read()
  let stopped = false
  let failing = false

  const look = async (anyway: boolean): Promise<void> => {
    if (!anyway && (await store.revocationsVersion()) === version) return
    const next = await read()
    const changed = next.version !== version
    ;({ version, index } = next)
    if (changed && !stopped) onChange(index.all)
  }
  // One look after the other: an older answer must not come after a newer one and replace it.
  let last: Promise<void> = Promise.resolve()
  const queue = (anyway: boolean): Promise<void> => {
    const mine = last.then(() => look(anyway))
    last = mine.catch(() => {})
    return mine
  }
  const watch = async (): Promise<void> => {
    try {
      await queue(false)
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
    isRevoked: (userId, credential) => isRevokedBy(index, userId, credential),
    reload: () => queue(true),
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

/** Revocations by what they are about. */
interface Index {
  readonly all: readonly Revocation[]
  readonly tokens: ReadonlySet<string>
  /** The latest time before which a user's tokens were issued that are revoked: infinite where all are. */
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

function isRevokedBy({ tokens, users }: Index, userId: string, { tokenId, issuedAt }: Credential): boolean {
  if (tokenId !== undefined && tokens.has(tokenId)) return true
  const before = users.get(userId)
  if (before === undefined) return false
  // A token that does not say when it was issued may have been before; none is issued after all times.
  return before === Infinity || issuedAt === undefined || issuedAt < before
}
