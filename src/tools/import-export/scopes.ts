/** Checks and formats the scopes of threads, as operators write them. */
import { isScope } from '../../core/route/ids.ts'
import { suggestion } from './suggestion.ts'

/** @returns null for a valid scope; else the text that follows it in a message */
export function scopeFault(scope: string, scopes: readonly string[]): string | null {
  if (scopes.includes(scope)) return null
  const keys = scopes.filter((one) => one !== '')
  if (scope === '') return `the configuration has no upstream without a key; it has: ${keys.join(', ')}`
  if (!isScope(scope)) return 'a key of upstreams or agents has up to 128 of a-z, 0-9 and -'
  const there = keys.length === 0 ? 'it has none but upstream' : suggestion(scope, keys)
  return `the configuration has no upstream of this key: ${there}`
}

/** The text that follows a thread id to say where it is; empty for the scope of `upstream`. */
export function atScope(scope: string): string {
  return scope === '' ? '' : ` at ${scope}`
}
