/** Whether an answer is as it has to be, and if it isn't, whether a fault that was made explains it. */
import type { Answer } from './answer.ts'

/** What is done to the gateway that an answer may show. */
export const FAULTS = {
  upstream: 'explained: upstream killed',
  token: 'explained: token expired',
  reload: 'explained: policy changed',
} as const

export type FaultName = keyof typeof FAULTS

/** From when to when a fault may be seen, in milliseconds since 1970; without an end while it lasts. */
export interface Window {
  readonly fault: 'upstream' | 'reload'
  readonly from: number
  to: number
}

/** What comes of judging. */
export type Verdict =
  | { readonly verdict: 'expected' }
  | { readonly verdict: 'explained'; readonly by: FaultName }
  | { readonly verdict: 'unexplained' }
  /** Worse than that: somebody got what is another's. */
  | { readonly verdict: 'wrong-owner' }

/** By how much a stream may outlive its token, in milliseconds: the clock tolerance, and timers of a busy machine. */
export const LATE = 10_000

/** What the gateway says while its upstream is away (docs/reference/errors.md). */
const AWAY: ReadonlySet<string> = new Set(['upstream-unreachable', 'upstream-unusable', 'not-ready', 'upstream-timeout'])

/** Judges. @param windows of all faults so far */
export function judge(answer: Answer, windows: readonly Window[]): Verdict {
  if (isWrongOwner(answer)) return { verdict: 'wrong-owner' }
  if (isAsWanted(answer)) return { verdict: 'expected' }
  const by = explanation(answer, windows)
  return by === null ? { verdict: 'unexplained' } : { verdict: 'explained', by }
}

function isWrongOwner({ foreign, wanted, status }: Answer): boolean {
  const isForeign = wanted.outcome === 'refused' && wanted.code === 'not-owner'
  return foreign !== null || (isForeign && isFine(status))
}

function isAsWanted(answer: Answer): boolean {
  const { wanted, status, code, ending, runError, fault } = answer
  if (wanted.outcome === 'refused') return status === wanted.status && code === wanted.code && ending === 'complete'
  // Who leaves before the head is there doesn't know what it would have been.
  if (ending === 'left') return status === null || (isFine(status) && fault === null)
  return isFine(status) && ending === 'complete' && runError === null && fault === null && !outlives(answer)
}

/** A stream that went on after its token was over. */
function outlives({ wanted, ended, tokenEnds }: Answer): boolean {
  return wanted.outcome === 'streamed' && tokenEnds !== null && ended > tokenEnds + LATE
}

function explanation(answer: Answer, windows: readonly Window[]): FaultName | null {
  const { kind, wanted, began, ended, status, code, ending, runError, fault, tokenEnds } = answer
  const isWithin = (name: Window['fault']): boolean =>
    windows.some(({ fault: one, from, to }) => one === name && began <= to && ended >= from)
  const isOver = tokenEnds !== null && ended >= tokenEnds && ended <= tokenEnds + LATE
  const endedByToken = isFine(status) && ending === 'complete' && runError === 'credential-expired' && fault === null
  if (isOver && (endedByToken || (status === 401 && code === 'credential-expired' && ending === 'complete'))) return 'token'
  if (isWithin('upstream')) {
    if (code !== null && AWAY.has(code) && ending === 'complete') return 'upstream'
    // What came of it has to be right up to where it breaks off, and to break off visibly.
    if (wanted.outcome !== 'refused' && isFine(status) && ending === 'cut' && !outlives(answer)) return 'upstream'
  }
  if (kind === 'stop' && isWithin('reload')) {
    const isPermitted = isFine(status) && ending === 'complete' && fault === null
    if (isPermitted || (status === 403 && code === 'not-allowed')) return 'reload'
  }
  return null
}

function isFine(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300
}
