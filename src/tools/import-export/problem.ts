/** What an import could not take over, and why: a line, a thread, or the whole source. */
import { NOBODY } from '../../store/port/thread.ts'
import { NOBODY_WORD, type Fault } from './entry.ts'

export interface Problem extends Pick<Fault, 'scope' | 'threadId' | 'owner'> {
  readonly kind: 'invalid' | 'conflict' | 'unmapped'
  readonly line: number | null
  /** The users that the line conflicts with. */
  readonly users: readonly string[]
  /** Follows the line and the thread in a message. */
  readonly reason: string
}

export function problemData({ kind, line, scope, threadId, owner, users, reason }: Problem): object {
  return {
    kind,
    ...(line === null ? {} : { line }),
    ...(threadId === null ? {} : { thread: threadId, ...(scope === '' ? {} : { scope }) }),
    ...(owner === null ? {} : { user: ownerWord(owner) }),
    ...(users.length === 0 ? {} : { with: users.map(ownerWord) }),
    reason,
  }
}

/** An owner as text: `nobody` if the owner was removed. */
export function ownerWord(owner: string): string {
  return owner === NOBODY ? NOBODY_WORD : owner
}

export type SourceLine<C extends string> =
  /** `line` is 1-based. */
  | { readonly line: number; readonly fields: Readonly<Partial<Record<C, unknown>>> }
  | { readonly line: number; readonly fault: string }

/** A source that cannot be read to its end: nothing of it is taken over. The message is for an operator. */
export class SourceFault extends Error {
  override readonly name = 'SourceFault'
}
