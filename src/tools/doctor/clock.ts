/** Compares two clocks by the Date header of an answer: the gateway judges tokens by time. */
import type { UpstreamAnswerHeaders } from '../../core/wire/headers.ts'
import { problem, notChecked, ok, seconds, warning, type Result } from './finding.ts'

/** The operator should know of this difference, though no token fails because of it. */
const NOTICEABLE_MS = 5000

/**
 * @param whose whose clock it is, as a phrase of the message
 * @param local when the answer arrived by the local clock, in milliseconds
 * @param tolerance the configured clockTolerance, in milliseconds
 */
export function judgeClock(whose: string, headers: UpstreamAnswerHeaders, local: number, tolerance: number): Result {
  const date = Date.parse(String(headers['date']))
  if (Number.isNaN(date)) return notChecked(`${whose} sends no Date`)
  if (headers['age'] !== undefined) return notChecked(`the answer of ${whose} came from a cache`)
  // Date has whole seconds, rounded down.
  const ahead = local - (date + 500)
  const off = Math.abs(ahead)
  if (off <= NOTICEABLE_MS) return ok(`the clock here agrees with that of ${whose}`)
  const message = `the clock here is ${seconds(off)} ${ahead > 0 ? 'ahead of' : 'behind'} that of ${whose}`
  const remedy = 'keep both clocks right with NTP'
  return off > tolerance
    ? problem(`${message}, more than authentication.clockTolerance (${seconds(tolerance)})`, remedy)
    : warning(message, remedy)
}
