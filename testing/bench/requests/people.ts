/** Who asks, and whose threads are whose. */

/** A thread, and the subject of the token that it belongs to. */
export interface Owned {
  readonly threadId: string
  readonly subject: string
}

/** Sends every load but `mix`. */
export const ALICE = 'alice'

/** Alice's, of the loads that are about one thread. */
export const THREAD: Owned = { threadId: 't-1', subject: ALICE }

/** Of first runs: its last twelve digits are another number in each. */
export const NEW_THREAD = '00000000-0000-4000-b000-000000000000'

/** In the upstream's list: every other one is Alice's. */
export const LISTED: readonly Owned[] = Array.from({ length: 1000 }, (_, at) => ({
  threadId: `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`,
  subject: at % 2 === 0 ? ALICE : 'bob',
}))

/**
 * Alice's groups, where the load is about them: about as many as a token has room for. Nothing is granted to them: to look is
 * what costs.
 */
export const GROUPS: readonly string[] = Array.from({ length: 1000 }, (_, at) => at.toString(36))

/** Sends the lists of the part `lists`: nobody else's figures change with what is hers. */
export const CAROL = 'carol'

/** In the upstream's list of the part `lists`: every twentieth is Carol's. */
export const MANY: readonly Owned[] = Array.from({ length: 10_000 }, (_, at) => ({
  threadId: `00000000-0000-4000-a000-${String(at).padStart(12, '0')}`,
  subject: at % 20 === 0 ? CAROL : `other-${at % 200}`,
}))

/** Who sends `mix`, and how many threads each of them has. */
export const CROWD = { users: 500, threadsEach: 10 } as const

/** The threads of the crowd. */
export const CROWDED: readonly Owned[] = Array.from({ length: CROWD.users * CROWD.threadsEach }, (_, at) => ({
  threadId: `00000000-0000-4000-9000-${String(at).padStart(12, '0')}`,
  subject: `user-${at % CROWD.users}`,
}))

/** What the gateway remembers of tokens: those of half of the crowd. */
export const TOKEN_CACHE = CROWD.users / 2

/** Everything that is in the ownership table when the measurement begins. */
export const ALL_OWNED: readonly Owned[] = [THREAD, ...LISTED, ...MANY, ...CROWDED]
