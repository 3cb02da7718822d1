/** Formats grants for operators. */
import { timeText } from '../tools/import-export/export.ts'
import type { Policy } from '../policy/policy.ts'
import type { StoredGrant } from '../store/port.ts'
import { complain } from './command.ts'

export function grantLine({ right, kind, id, grantedBy, grantedAt }: StoredGrant): string {
  return `${right} to ${kind} ${id}, by ${grantedBy} on ${timeText(grantedAt)}`
}

/** The store keeps grants under every policy, but they only have an effect where the policy opens shared threads. */
export function warnOfNoSharing({ rules, file }: Policy): void {
  if (!rules.sharing) complain(`warning: the policy ${file} has no sharing: grants have no effect`)
}
