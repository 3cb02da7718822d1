/** Who may ask, and what they are told, in the words of the design's table. */
import { decide, type OwnerRecord } from '../../src/core/decide/decide.ts'
import { ANONYMOUS, EVERYBODY, type Principal, type User } from '../../src/core/decide/principal.ts'
import type { Policy } from '../../src/policy/compile.ts'
import { descriptor } from './policies.ts'

/** A user of the issuer `corp`. */
export function user(subject: string, more: Partial<User> = {}): User {
  const nobody = { kind: 'user', issuer: 'corp', name: undefined, roles: [], permissions: [], groups: [], claims: {} } as const
  return { ...nobody, subject, id: `${more.issuer ?? 'corp'}:${subject}`, ...more }
}

/** Everybody that the table speaks of. */
export const CALLERS = {
  anonymous: ANONYMOUS,
  alice: user('alice'),
  olga: user('olga', { roles: ['operator'] }),
  everybody: EVERYBODY,
} as const satisfies Record<string, Principal>

/** What a thread is to the caller. */
export type Thread = 'own' | 'read' | 'write' | 'unknown' | 'foreign' | 'deleted' | 'foreign, deleted'

function recordOf(thread: Thread, caller: Principal): OwnerRecord {
  if (thread === 'unknown') return null
  if (thread === 'read' || thread === 'write') return { owner: 'corp:bob', deleted: false, granted: thread }
  return { owner: thread.startsWith('foreign') ? 'corp:bob' : caller.id, deleted: thread.endsWith('deleted') }
}

/**
 * What a caller is told: `yes`, `claims` (a run registers), `empty` (answered without asking the upstream), or the code.
 * @param userScoped whether the upstream scopes users itself
 */
export function told(
  policy: Pick<Policy, 'rules'>,
  caller: Principal,
  route: string,
  thread: Thread = 'own',
  userScoped = false,
): string {
  const [method = '', path = ''] = route.split(' ')
  const facts = { userScoped, unknownThread: 'claim', enforcement: 'enforce', record: recordOf(thread, caller) } as const
  const decision = decide(descriptor(method, path), caller, policy.rules, facts)
  if (decision.outcome === 'needs') return `needs ${decision.fact}`
  if (decision.outcome === 'refused') return decision.code
  return decision.answerEmpty ? 'empty' : decision.claim ? 'claims' : 'yes'
}
