/** Warns about a policy that shares threads in one place but not in another. */
import type { RouteId } from '../core/route/routes.ts'
import type { Report } from '../document/document.ts'
import type { PolicyFile, RuleOfFile } from './schema.ts'

/** Finds the switch without rules, rules without the switch, and threads that callers can find but not open. */
export function warnOfSharing({ sharing, rules }: PolicyFile, warn: Report): void {
  const lines = rules.map((rule, at) => ({ rule, at }))
  const opening = lines.filter(({ rule }) => isAllowing(rule) && rule.threads?.includes('shared') === true)
  const [first] = opening
  if (!sharing) {
    const granting = lines.find(({ rule }) => isAllowing(rule) && isOn(rule, 'threads/grants'))
    const off = 'no grant counts while sharing is false'
    const hint = 'write sharing: true'
    if (first !== undefined) warn(['rules', first.at, 'threads'], `${off}, so shared never matches`, hint)
    if (granting !== undefined) warn(['rules', granting.at, 'routes'], `${off}, so owners grant to no effect`, hint)
    return
  }
  if (first === undefined) {
    warn(['sharing'], 'no rule opens shared threads', 'add shared to threads where own stands, or take it out')
    return
  }
  const opened = (id: RouteId): boolean => opening.some(({ rule }) => isOn(rule, id))
  if (opened('threads/messages') === opened('agent/connect')) return
  warn(
    ['sharing'],
    opened('threads/messages')
      ? 'shared threads are listed, and no rule opens agent/connect for them: a chat would not show them'
      : 'a chat shows shared threads, and no rule opens threads/messages for them: they are in no list',
    'add shared to the threads of both',
  )
}

function isAllowing({ allow }: RuleOfFile): boolean {
  return (allow ?? []).length > 0
}

function isOn({ routes }: RuleOfFile, id: RouteId): boolean {
  return routes !== 'all' && routes.includes(id)
}
