/** An active policy: its compiled rules, and the file that it was read from. */
import type { BodyPolicy } from '../core/route/bodies.ts'
import type { Rules } from '../core/decide/rules.ts'

export interface Policy {
  readonly file: string
  /** SHA-256 of the file, in hexadecimal digits: two policies with the same hash decide alike. */
  readonly hash: string
  readonly rules: Rules
  /** The claims that its rules compare, as JSON pointers. */
  readonly claimPointers: readonly string[]
  /** What is forwarded of a body unless a rule says otherwise. */
  readonly bodies: BodyPolicy
}
