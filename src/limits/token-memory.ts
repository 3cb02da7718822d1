/** Counters of token budgets in the memory of this process. */
import { randomUUID } from 'node:crypto'
import type { BudgetUse } from '../core/decide/limits.ts'
import type { Spending, TokenCounter, TokenCounters } from './port.ts'
import { NOTHING_SPENT, roomFor } from './room.ts'

interface Counter {
  spent: number
  /** Milliseconds since the epoch; 0 before the first charge. */
  endsAt: number
  /** Tokens that are set aside, by reservation. */
  readonly open: Map<string, number>
}

/** Beyond so many counters, those whose window is over are removed. */
const SWEEP_AT = 1024

/** @param clock milliseconds since the epoch */
export function makeTokenMemory(clock: () => number = Date.now): TokenCounters {
  const counters = new Map<string, Counter>()
  const reservations = new Map<string, readonly BudgetUse[]>()
  let sweepAt = SWEEP_AT

  const keyOf = ({ who, window }: TokenCounter): string => `${window} ${who}`
  const spendingOf = (counter: TokenCounter): Spending => {
    const known = counters.get(keyOf(counter))
    if (known === undefined) return NOTHING_SPENT
    const resetsIn = Math.max(0, known.endsAt - clock())
    const reserved = [...known.open.values()].reduce((sum, one) => sum + one, 0)
    return { spent: resetsIn === 0 ? 0 : known.spent, reserved, open: known.open.size, resetsIn }
  }
  const counterOf = (use: BudgetUse): Counter => {
    const key = keyOf(use)
    let counter = counters.get(key)
    if (counter === undefined) {
      if (counters.size >= sweepAt) sweep()
      counters.set(key, (counter = { spent: 0, endsAt: 0, open: new Map<string, number>() }))
    }
    return counter
  }
  const sweep = (): void => {
    for (const [key, { endsAt, open }] of counters) if (open.size === 0 && endsAt <= clock()) counters.delete(key)
    sweepAt = Math.max(SWEEP_AT, counters.size * 2)
  }
  const charge = (counter: Counter, tokens: number, window: number): void => {
    if (tokens === 0) return
    const now = clock()
    if (counter.endsAt <= now) {
      counter.spent = 0
      counter.endsAt = now + window
    }
    counter.spent = Math.min(counter.spent + tokens, Number.MAX_SAFE_INTEGER)
  }

  return {
    async reserve(uses) {
      const left = roomFor(uses, uses.map(spendingOf))
      if ('name' in left) return left
      const id = randomUUID()
      for (const use of uses) counterOf(use).open.set(id, use.reserve)
      reservations.set(id, uses)
      return { id, left }
    },
    async settle(id, tokens, end) {
      const uses = reservations.get(id) ?? []
      reservations.delete(id)
      for (const use of uses) {
        const counter = counterOf(use)
        counter.open.delete(id)
        charge(counter, end === 'unseen' ? Math.max(tokens, use.reserve) : tokens, use.window)
      }
    },
    spending: async (asked) => asked.map(spendingOf),
  }
}
