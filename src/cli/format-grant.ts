/** Formats grants for operators. */
import { timeText } from '../tools/import-export/export.ts'
import type { Policy } from '../policy/policy.ts'
import type { StoredGrant } from '../store/port.ts'
import { complain } from './command.ts'
import { STORE_OPTIONS } from './with-store.ts'
import { SCOPE_OPTION } from './scope-option.ts'

export const GRANT_OPTIONS = {
  ...STORE_OPTIONS,
  ...SCOPE_OPTION,
  thread: { type: 'string' },
  user: { type: 'string' },
  group: { type: 'string' },
} as const

export function grantLine({ right, kind, id, grantedBy, grantedAt }: StoredGrant): string {
  return `${right} to ${kind} ${id}, by ${grantedBy} on ${timeText(grantedAt)}`
}

export function shownGrant({ right, kind, id, grantedBy, grantedAt }: StoredGrant): object {
  return { [kind]: id, right, grantedBy, grantedAt: timeText(grantedAt) }
}

/** The store keeps grants under every policy, but they only have an effect where the policy opens shared threads. */
export function warnOfNoSharing({ rules, file }: Policy): void {
  if (!rules.sharing) complain(`warning: the policy ${file} has no sharing: grants have no effect`)
}
