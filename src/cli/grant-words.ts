/** Grants as operators see them. */
import { timeText } from '../adoption/export.ts'
import type { Policy } from '../policy/policy.ts'
import type { StoredGrant } from '../store/port.ts'
import { complain } from './command.ts'

/** A grant in words. */
export function grantLine({ right, kind, id, grantedBy, grantedAt }: StoredGrant): string {
  return `${right} to ${kind} ${id}, by ${grantedBy} on ${timeText(grantedAt)}`
}

/** A grant as data. */
export function shownGrant({ right, kind, id, grantedBy, grantedAt }: StoredGrant): object {
  return { [kind]: id, right, grantedBy, grantedAt: timeText(grantedAt) }
}

/** Grants are kept whatever the policy says, and have an effect where it opens shared threads. */
export function warnOfNoSharing({ rules, file }: Policy): void {
  if (!rules.sharing) complain(`warning: the policy ${file} has no sharing: grants have no effect`)
}
