/** Keeps count of all answers. */
import { KINDS, type Answer, type KindName } from './answer.ts'
import { FAULTS, judge, type FaultName, type Window } from './judging.ts'

/** How the answers of a kind came out. */
export interface KindCounts {
  asked: number
  expected: number
  readonly explained: Record<FaultName, number>
  unexplained: number
  wrongOwner: number
}

/** All of them. */
export interface Account {
  readonly kinds: Readonly<Record<KindName, KindCounts>>
  /** The first of those that nothing explains, in full. */
  readonly examples: Answer[]
  /** Takes an answer, and judges it by the faults that were begun so far. */
  readonly take: (answer: Answer) => void
}

/** So many are kept in full. */
const EXAMPLES = 20

/**
 * Makes it.
 * @param windows of faults: more may come
 * @param tell is told of each of those that are kept in full
 */
export function makeAccount(windows: readonly Window[], tell: (answer: Answer) => void): Account {
  const kinds = Object.fromEntries(Object.keys(KINDS).map((name) => [name, none()])) as Record<KindName, KindCounts>
  const examples: Answer[] = []
  const take = (answer: Answer): void => {
    const counts = kinds[answer.kind]
    counts.asked += 1
    const result = judge(answer, windows)
    if (result.verdict === 'expected') counts.expected += 1
    else if (result.verdict === 'explained') counts.explained[result.by] += 1
    else {
      counts[result.verdict === 'wrong-owner' ? 'wrongOwner' : 'unexplained'] += 1
      if (examples.length >= EXAMPLES) return
      examples.push(answer)
      tell(answer)
    }
  }
  return { kinds, examples, take }
}

/** Sums over kinds. */
export function totalOf(kinds: Account['kinds']): KindCounts {
  const total = none()
  for (const one of Object.values(kinds)) {
    total.asked += one.asked
    total.expected += one.expected
    total.unexplained += one.unexplained
    total.wrongOwner += one.wrongOwner
    for (const fault of Object.keys(FAULTS) as FaultName[]) total.explained[fault] += one.explained[fault]
  }
  return total
}

function none(): KindCounts {
  return { asked: 0, expected: 0, explained: { upstream: 0, token: 0, reload: 0 }, unexplained: 0, wrongOwner: 0 }
}
