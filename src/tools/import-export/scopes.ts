/** The upstreams in whose scopes threads can be, as operators write them. */
import { isScope } from '../../core/route/ids.ts'
import { suggestion } from './suggestion.ts'

/**
 * What is wrong with a scope.
 * @param scopes those that there are
 * @returns null if nothing is; else the words to follow it
 */
export function scopeFault(scope: string, scopes: readonly string[]): string | null {
  if (scopes.includes(scope)) return null
  const keys = scopes.filter((one) => one !== '')
  if (scope === '') return `the configuration has no upstream without a key; it has: ${keys.join(', ')}`
  if (!isScope(scope)) return 'a key of upstreams or agents has up to 128 of a-z, 0-9 and -'
  const there = keys.length === 0 ? 'it has none but upstream' : suggestion(scope, keys)
  return `the configuration has no upstream of this key: ${there}`
}

/** Where a thread is, to follow its id: nothing where that is `upstream`. */
export function atScope(scope: string): string {
  return scope === '' ? '' : ` at ${scope}`
}
