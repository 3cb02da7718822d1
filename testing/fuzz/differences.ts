/** How what the runtime made of a request differs from what the gateway decided on. */
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import { memberOf } from './handed-on.ts'
import type { Verdict } from './judge.ts'
import { misreading } from './other-readers.ts'

/** What a verdict is about: the gateway's own request, or the caller's. */
export const SENT = 'what was sent'
export const WRITTEN = 'what was written'

/**
 * How what the runtime resolved differs from what was decided.
 * @param misread true if V8 took a key of the body for another one (nodejs/node#63785): its thread is not the one written
 */
export function differences(
  descriptor: RouteDescriptor,
  verdict: Verdict,
  what: typeof SENT | typeof WRITTEN,
  misread = false,
): string[] {
  const { route, ids } = descriptor
  if (typeof verdict === 'number') return [`${what}: decided ${route.id}, the runtime answers ${verdict}`]
  const faults: string[] = []
  const compare = (name: string, decided: unknown, resolved: unknown): void => {
    if (decided !== resolved) faults.push(`${what}: ${name} decided ${print(decided)}, resolved ${print(resolved)}`)
  }
  compare('the operation', route.id, verdict.route.method)
  if (verdict.method !== null) compare('the method', route.method, verdict.method)
  compare('the agent', ids.agentId, verdict.route.agentId)
  compare('the memory', ids.memoryId, verdict.route.memoryId)
  const { thread } = verdict
  if (!misread) compare('the thread', ids.threadId, thread)
  const named = descriptor.query.filter(([name]) => name === 'agentId')
  for (const [kind, id] of [...Object.entries(ids), ...named]) {
    const wrong = misreading(kind, id as string)
    if (wrong !== null) faults.push(`decided on ${print(id)}, which ${wrong}`)
  }
  const strange = what === SENT ? verdict.query.filter(([name]) => !route.query.includes(name)) : []
  faults.push(...strange.map(([name]) => `${what}: the query has ${print(name)}`))
  for (const name of route.query) {
    // The gateway walks the upstream's pages itself.
    if (route.id === 'threads/list' && what === SENT && (name === 'limit' || name === 'cursor')) continue
    const decided = descriptor.query.filter(([known]) => known === name).map(([, value]) => value)
    const resolved = verdict.query.filter(([known]) => known === name).map(([, value]) => value)
    compare(`the query's ${name}`, print(decided), print(resolved))
  }
  return faults
}

/** True if V8 takes a key of a body for another one: looks for keys with a backslash in what the runtime's own JSON.parse makes of a body. */
export function isMisread(body: Buffer): boolean {
  try {
    return hasBackslashKey(JSON.parse(body.toString('utf8')))
  } catch {
    return false
  }
}

function hasBackslashKey(value: unknown): boolean {
  return keysOf(value).some((key) => key.includes('\\') || hasBackslashKey(memberOf(value, key)))
}

/** The keys of a value, if it is an object. */
export function keysOf(body: unknown): readonly string[] {
  return typeof body === 'object' && body !== null ? Object.keys(body) : []
}

/** A value, to be compared or shown. */
export function print(value: unknown): string {
  return value === undefined
    ? 'nothing'
    : JSON.stringify(value, (_key, part: unknown) => (part === Infinity || part === -Infinity ? 'too large' : part))
}
