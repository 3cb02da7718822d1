/** What could not be taken over, and why. */
import { NOBODY } from '../../store/port.ts'
import { NOBODY_WORD } from './entry.ts'

/** Something for the operator to settle. */
export interface Problem {
  readonly kind: 'invalid' | 'conflict' | 'unmapped'
  /** The line of the file that it came from. */
  readonly line: number | null
  /** Of the thread, where there is one. */
  readonly scope: string
  readonly threadId: string | null
  /** Whose the source says that it is. */
  readonly owner: string | null
  /** With whom it is in conflict. */
  readonly users: readonly string[]
  /** In words, to follow the line and the thread. */
  readonly reason: string
}

/** A problem as data: what does not apply is left out. */
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

/** An owner in words: `nobody` where the owner was taken away. */
export function ownerWord(owner: string): string {
  return owner === NOBODY ? NOBODY_WORD : owner
}
