/** Joins the conditions of several workers for /readyz. */
import type { Readiness } from '../../http/listeners/readiness.ts'
import type { Conditions } from './messages.ts'

/** Ready when all workers are: what one worker waits for, all wait for. */
export function joinReadiness(own: Readiness, workers: () => readonly Conditions[]): Readiness {
  const all = (of: (one: Conditions) => ReadonlyMap<string, string>): ReadonlyMap<string, string> =>
    new Map([...workers().flatMap((one) => [...of(one)]), ...of({ pending: own.pending(), notes: own.notes() })])
  return { ...own, pending: () => all(({ pending }) => pending), notes: () => all(({ notes }) => notes) }
}

export function reportedReadiness(own: Readiness, send: (conditions: Conditions) => void): Readiness {
  const report = (): void => send({ pending: new Map(own.pending()), notes: new Map(own.notes()) })
  return {
    ...own,
    set(name, pending) {
      own.set(name, pending)
      report()
    },
    note(name, text) {
      own.note(name, text)
      report()
    },
  }
}
