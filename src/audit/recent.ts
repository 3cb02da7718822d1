/** The last decisions, and the number of decisions in each minute, for operators who look at a running gateway. */
import type { Reason } from '../core/reasons.ts'
import { auditLine, type AuditedDecision, type AuditLine } from './line.ts'

export interface MinuteCounts {
  /** Milliseconds since the epoch. */
  readonly minute: number
  readonly permitted: number
  readonly refused: Readonly<Partial<Record<Reason, number>>>
}

export interface RecentDecisions {
  /** Cheap, because each request waits for it. */
  add(decided: AuditedDecision): void
  /** The latest first. */
  lines(): readonly AuditLine[]
  /** The latest first; a minute without decisions is absent. */
  minutes(): readonly MinuteCounts[]
}

const KEPT = 1000
const MINUTES = 60
const MINUTE_MS = 60_000

/** Ids may be parts of the text of a large body, which would stay in memory with them. Content is for the audit alone. */
function ofItsOwn(decided: AuditedDecision): AuditedDecision {
  const { descriptor } = decided.request
  if (descriptor === null) return decided
  const ids = Object.fromEntries(Object.entries(descriptor.ids).map(([name, id]) => [name, Buffer.from(id).toString()]))
  const answers = descriptor.answers?.map(({ id, answer }) => ({ id, answer }))
  const own = answers === undefined ? { ...descriptor, ids } : { ...descriptor, ids, answers }
  return { ...decided, request: { ...decided.request, descriptor: own } }
}

interface Minute {
  readonly minute: number
  permitted: number
  readonly refused: Partial<Record<Reason, number>>
}

export function makeRecentDecisions(): RecentDecisions {
  const kept: AuditedDecision[] = []
  let next = 0
  const minutes: Minute[] = []
  return {
    add(decided) {
      kept[next] = ofItsOwn(decided)
      next = (next + 1) % KEPT
      const minute = decided.time - (decided.time % MINUTE_MS)
      let current = minutes.at(-1)
      if (current?.minute !== minute) {
        current = { minute, permitted: 0, refused: {} }
        minutes.push(current)
        if (minutes.length > MINUTES) minutes.shift()
      }
      const { outcome } = decided.decision
      if (outcome === 'permitted') current.permitted += 1
      else current.refused[outcome.reason] = (current.refused[outcome.reason] ?? 0) + 1
    },
    lines: () => [...kept.slice(next), ...kept.slice(0, next)].map(auditLine).toReversed(),
    minutes: () => minutes.toReversed(),
  }
}
