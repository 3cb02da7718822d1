/** What of a configuration holds from start to end of a process. */
import { valueAt } from '../core/json/pointer.ts'
import type { Config } from './schema.ts'

/** By JSON pointer: what is bound, opened or sized once. */
const FIXED = [
  '/listen/host',
  '/listen/port',
  '/listen/trustedProxies',
  '/health/host',
  '/health/port',
  '/admin/host',
  '/admin/port',
  '/ownership/store',
  '/ownership/postgres',
  '/limits/headers',
  '/limits/bodiesInFlight',
  '/audit',
  '/workers',
] as const

/**
 * The keys that differ and can't change without a restart, as an operator writes them.
 * @param running the active configuration
 * @param next the one that is to replace it
 */
export function needsRestart(running: Config, next: Config): readonly string[] {
  return FIXED.filter((pointer) => JSON.stringify(valueAt(running, pointer)) !== JSON.stringify(valueAt(next, pointer))).map(
    (pointer) => pointer.slice(1).replaceAll('/', '.'),
  )
}
