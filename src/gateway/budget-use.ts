/** What a user, a group or the users with one claim value have used of their token budgets. */
import { aloneCounter, claimCounter, groupCounter, type SharedBy, type TokenBudget } from '../core/decide/limits.ts'
import type { BudgetQuestion } from '../http/admin/inspection.ts'
import type { BudgetUsed } from '../http/admin/schemas.ts'
import type { TokenCounters } from '../limits/port.ts'
import type { Checked } from '../snapshot/load.ts'

interface Found {
  readonly budget: TokenBudget
  readonly rule: string | null
  readonly who: string
}

export async function budgetUse(
  { config, policy }: Pick<Checked, 'config' | 'policy'>,
  counters: Pick<TokenCounters, 'spending'>,
  question: BudgetQuestion,
  now: number,
): Promise<readonly BudgetUsed[]> {
  const rules = new Set(Object.values(policy.rules.routes).flatMap((route) => route.rules))
  const found: Found[] = [
    ...config.limits.tokens.map((budget) => ({ budget, rule: null })),
    ...[...rules].flatMap(({ name, limits }) => (limits.tokens ?? []).map((budget) => ({ budget, rule: name }))),
  ].flatMap(({ budget, rule }) => countersAsked(budget.by, question).map((who) => ({ budget, rule, who })))
  const spending = await counters.spending(found.map(({ budget: { window }, who }) => ({ window, who })))
  return found.map(({ budget: { by, limit, window, onExceeded }, rule }, at) => {
    const { spent = 0, reserved = 0, open = 0, resetsIn = 0 } = spending[at] ?? {}
    return {
      rule,
      per: perOf(by),
      limit,
      windowSeconds: window / 1000,
      onExceeded,
      spent,
      reserved,
      openRuns: open,
      resetsAt: resetsIn === 0 ? null : new Date(now + resetsIn).toISOString(),
    }
  })
}

function perOf(by: SharedBy | undefined): string {
  if (by === undefined) return 'user'
  return by.kind === 'group' ? 'group' : by.at
}

/** A user without the group or claim of a budget counts alone. */
function countersAsked(by: SharedBy | undefined, question: BudgetQuestion): readonly string[] {
  switch (question.kind) {
    case 'user':
      return [by === undefined ? question.user : aloneCounter(by, question.user)]
    case 'group':
      return by?.kind === 'group' && by.groups?.includes(question.group) !== false ? [groupCounter(question.group)] : []
    case 'claim': {
      const { at, issuer, value } = question
      if (by?.kind !== 'claim' || by.at !== at) return []
      // The question does not say whether digits are a number in the token.
      const number = /^-?\d{1,16}$/.test(value) ? [claimCounter(at, issuer, Number(value))] : []
      return [claimCounter(at, issuer, value), ...number]
    }
  }
}
