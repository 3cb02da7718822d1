/** Joins the conditions of several workers for /readyz. */
import type { Readiness } from '../../http/listeners/readiness.ts'
import type { Conditions } from './messages.ts'

/** Ready when all workers are: what one worker waits for, all wait for. */
export function joinReadiness(own: Readiness, workers: () => readonly Conditions[]): Readiness {
  const all = (of: (one: Conditions) => ReadonlyMap<string, string>): ReadonlyMap<string, string> =>
    new Map([...workers().flatMap((one) => [...of(one)]), ...of({ pending: own.pending(), notes: own.notes() })])
  return { ...own, pending: () => all(({ pending }) => pending), notes: () => all(({ notes }) => notes) }
}

export function toldReadiness(own: Readiness, tell: (conditions: Conditions) => void): Readiness {
  const told = (): void => tell({ pending: new Map(own.pending()), notes: new Map(own.notes()) })
  return {
    ...own,
    set(name, pending) {
      own.set(name, pending)
      told()
    },
    note(name, text) {
      own.note(name, text)
      told()
    },
  }
}
