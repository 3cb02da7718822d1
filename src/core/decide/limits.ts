/** Limits as data, and which counter a caller shares with which others. */
import { valueAt } from '../json/pointer.ts'
import { isUserId } from '../route/ids.ts'
import type { Principal } from './principal.ts'

/** Whose use counts together. `groups`: only these of the caller's groups; null for all of them. */
export type SharedBy =
  | { readonly kind: 'group'; readonly groups: readonly string[] | null }
  | { readonly kind: 'claim'; readonly at: string }

interface Shared {
  /** Absent for a limit that each caller has alone. */
  readonly by?: SharedBy
}

/** The gateway counts in windows of twice the time, in which twice the amount may come. */
export interface Rate extends Shared {
  readonly amount: number
  /** Milliseconds. */
  readonly per: number
}

export interface StreamLimit extends Shared {
  readonly most: number
}

export interface TokenBudget extends Shared {
  /** Tokens in a window. */
  readonly limit: number
  /** Milliseconds; the window begins with its first run. */
  readonly window: number
  /** Tokens set aside for each open run, and charged for a run whose end the gateway does not see. */
  readonly reserve: number
  /** Whether an open run that uses more than is left goes on to its end. */
  readonly onExceeded: 'finish' | 'end'
}

export type Rates = 'off' | readonly Rate[]
export type StreamLimits = 'off' | readonly StreamLimit[]
export type TokenBudgets = readonly TokenBudget[]

/**
 * The counters of a limit that a caller counts in. Without a usable claim or group a caller counts alone: neither without
 * limit, nor in the counter of others, nor in that of the caller's own limits.
 * @param caller names the caller. No such name begins with `[`, so it never equals a name that is made here
 */
export function countersOf(by: SharedBy | undefined, principal: Principal, caller: string): readonly string[] {
  if (by === undefined) return [caller]
  const alone = [aloneCounter(by, caller)]
  if (principal.kind !== 'user') return alone
  if (by.kind === 'group') {
    const groups = [...new Set(principal.groups)].filter((group) => by.groups?.includes(group) !== false)
    return groups.length === 0 ? alone : groups.map(groupCounter)
  }
  const value = valueAt(principal.claims, by.at)
  return isClaimValue(value) ? [claimCounter(by.at, principal.issuer, value)] : alone
}

export function aloneCounter(by: SharedBy, caller: string): string {
  return JSON.stringify(['alone', by.kind === 'claim' ? by.at : 'group', caller])
}

/** The group as `issuer:group`. */
export function groupCounter(group: string): string {
  return JSON.stringify(['group', group])
}

/** Two issuers may use one value for different tenants. A number is another value than its digits. */
export function claimCounter(at: string, issuer: string, value: string | number): string {
  return JSON.stringify(['claim', at, issuer, value])
}

/** Budgets that one run counts in, each once: two budgets with the groups of one caller may name one group. */
export interface BudgetUse extends Pick<TokenBudget, 'limit' | 'window' | 'reserve' | 'onExceeded'> {
  readonly who: string
}

/** @param least tokens that the run takes at least */
export function budgetUses(budgets: TokenBudgets, principal: Principal, caller: string, least: number): readonly BudgetUse[] {
  const uses = new Map<string, BudgetUse>()
  for (const { by, limit, window, reserve, onExceeded } of budgets) {
    for (const who of countersOf(by, principal, caller)) {
      const use = { who, limit, window, reserve: Math.max(reserve, least), onExceeded }
      const key = JSON.stringify([window, who])
      const other = uses.get(key)
      uses.set(key, other === undefined ? use : stricter(use, other))
    }
  }
  return [...uses.values()]
}

function stricter(one: BudgetUse, other: BudgetUse): BudgetUse {
  return {
    ...one,
    limit: Math.min(one.limit, other.limit),
    reserve: Math.max(one.reserve, other.reserve),
    onExceeded: other.onExceeded === 'end' ? 'end' : one.onExceeded,
  }
}

function isClaimValue(value: unknown): value is string | number {
  return typeof value === 'number' ? Number.isSafeInteger(value) : isUserId(value)
}
