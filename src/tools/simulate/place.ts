/** Formats the place of a rule, in one form for readers and one for scripts. */
import type { RulePlace } from '../../core/reasons.ts'

/** `staff-only (policies/default.yaml:12)` */
export function placeText({ name, file, line }: RulePlace): string {
  return `${name} (${file}${line === undefined ? '' : `:${line}`})`
}

export function placeOf({ name, file, line }: RulePlace): RulePlace {
  return line === undefined ? { name, file } : { name, file, line }
}
