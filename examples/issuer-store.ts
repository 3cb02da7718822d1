/** Where the issuer keeps sessions, interactions, codes and grants: in memory, each issuer for itself. */

interface Stored {
  readonly payload: Payload
  readonly expires: number
}

/** What oidc-provider stores; only the names it's looked up by matter here. */
interface Payload {
  uid?: string
  userCode?: string
  grantId?: string
  consumed?: number
}

/** Beyond this many entries the oldest go, so that a demo left running doesn't grow for ever. */
const MOST = 10_000

/**
 * Makes the adapter factory for one issuer (the contract is oidc-provider's `adapter` setting). The library's own
 * in-memory adapter is one for the whole process and announces itself with a warning.
 * @returns a function from the name of a model to its store
 */
export function memoryStore(): (model: string) => object {
  const entries = new Map<string, Stored>()

  const find = (key: string): Payload | undefined => {
    const stored = entries.get(key)
    if (stored !== undefined && stored.expires > Date.now()) return stored.payload
    entries.delete(key)
    return undefined
  }

  const firstOf = (model: string, fits: (payload: Payload) => boolean): Payload | undefined => {
    for (const key of entries.keys()) {
      const payload = key.startsWith(`${model}:`) ? find(key) : undefined
      if (payload !== undefined && fits(payload)) return payload
    }
    return undefined
  }

  return (model) => ({
    async upsert(id: string, payload: Payload, expiresIn?: number) {
      entries.set(`${model}:${id}`, { payload, expires: expiresIn === undefined ? Infinity : Date.now() + expiresIn * 1000 })
      for (const oldest of entries.keys()) {
        if (entries.size <= MOST) break
        entries.delete(oldest)
      }
    },
    async find(id: string) {
      return find(`${model}:${id}`)
    },
    async findByUid(uid: string) {
      return firstOf(model, (payload) => payload.uid === uid)
    },
    async findByUserCode(userCode: string) {
      return firstOf(model, (payload) => payload.userCode === userCode)
    },
    async consume(id: string) {
      const payload = find(`${model}:${id}`)
      if (payload !== undefined) payload.consumed = Math.floor(Date.now() / 1000)
    },
    async destroy(id: string) {
      entries.delete(`${model}:${id}`)
    },
    async revokeByGrantId(grantId: string) {
      for (const [key, stored] of entries) if (stored.payload.grantId === grantId) entries.delete(key)
    },
  })
}
