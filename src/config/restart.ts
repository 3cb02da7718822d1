/** Finds configuration changes that need a restart of the process. */
import { valueAt } from '../core/json/pointer.ts'
import type { Config } from './schema.ts'

/** JSON pointers of settings that are bound, opened or sized once. */
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

export function needsRestart(running: Config, next: Config): readonly string[] {
  return FIXED.filter((pointer) => JSON.stringify(valueAt(running, pointer)) !== JSON.stringify(valueAt(next, pointer))).map(
    (pointer) => pointer.slice(1).replaceAll('/', '.'),
  )
}
