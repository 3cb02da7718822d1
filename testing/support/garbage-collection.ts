/** Collects garbage when a test asks for it. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')

/** Collects the whole heap, or the young generation alone. */
export const collectGarbage = runInNewContext('gc') as (options?: { readonly type: 'minor' }) => void

/** V8 moves to its old generation what it can't discard of the young one twice. */
export function collectYoung(): void {
  for (let twice = 0; twice < 2; twice += 1) collectGarbage({ type: 'minor' })
}
