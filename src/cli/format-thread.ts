/** Formats threads and grants for operators. */
import { timeText } from '../tools/import-export/export.ts'
import { atScope } from '../tools/import-export/users.ts'
import type { Policy } from '../policy/compile.ts'
import type { StoredGrant } from '../store/port/grants.ts'
import type { ThreadKey } from '../store/port/thread.ts'
import { complain, type Terminal } from './terminal.ts'

export function threadText({ scope, threadId }: ThreadKey): string {
  return `${threadId}${atScope(scope)}`
}

/** A thread as data; the scope of `upstream` is left out. */
export function threadData({ scope, threadId }: ThreadKey): { readonly thread: string; readonly scope?: string } {
  return { thread: threadId, ...(scope === '' ? {} : { scope }) }
}

export function grantLine({ right, kind, id, grantedBy, grantedAt }: StoredGrant): string {
  return `${right} to ${kind} ${id}, by ${grantedBy} on ${timeText(grantedAt)}`
}

/** The store keeps grants under every policy, but they only have an effect where the policy opens shared threads. */
export function warnOfNoSharing(terminal: Terminal, { rules, file }: Policy): void {
  if (!rules.sharing) complain(terminal, `warning: the policy ${file} does not set sharing: true, so grants have no effect`)
}

/** `1 thread`, `2 threads`. */
export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`
}
