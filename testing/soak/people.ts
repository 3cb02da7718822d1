/** Who asks in a soak, and whose threads are whose. */
import type { Owned } from '../bench/requests/people.ts'

/** Users, and how many threads each of them has before it begins. */
const CROWD = { users: 40, threadsEach: 10 } as const

/** The subjects of their tokens. */
export const SUBJECTS: readonly string[] = Array.from({ length: CROWD.users }, (_, at) => `user-${at}`)

/** Their threads, which are also those that the upstream lists. */
export const OWNED: readonly Owned[] = Array.from({ length: CROWD.users * CROWD.threadsEach }, (_, at) => ({
  threadId: `00000000-0000-4000-a000-${String(at).padStart(12, '0')}`,
  subject: SUBJECTS[at % CROWD.users]!,
}))
