/** Evaluates a second policy beside the enforced one, after the answer is sent: its errors and slow rules reach no caller. */
import type { RouteDescriptor } from '../core/route/classify.ts'
import type { MessageRules } from '../core/route/message-rules.ts'
import { decide, type Facts, type OwnerRecord, type Permit } from '../core/decide/decide.ts'
import type { Principal } from '../core/decide/principal.ts'
import type { Refusal, RulePlace } from '../core/reasons.ts'
import type { Rule, Rules } from '../core/decide/rules.ts'
import type { Logger } from '../observe/log.ts'
import type { RequestMetrics, RouteLabel, Ruling } from '../observe/metrics.ts'
import type { Policy } from '../policy/compile.ts'

export interface Decided {
  readonly requestId: string
  readonly route: RouteLabel
  readonly descriptor: RouteDescriptor
  readonly principal: Principal
  readonly facts: Facts
  readonly outcome: Refusal | 'permitted'
}

export interface ShadowParts {
  readonly enforced: Rules
  readonly shadow: Pick<Policy, 'rules'>
  readonly recordOf: (threadId: string) => OwnerRecord | Promise<OwnerRecord>
  readonly metrics: Pick<RequestMetrics, 'shadowDiffered'>
  readonly log: Logger
}

interface Said {
  readonly ruling: Ruling
  readonly code: string | null
  readonly rule: RulePlace | null
  /** Which fields pass with a permit and which limits it has, by name. */
  readonly terms: Readonly<Record<string, string>>
}

/** Skips requests refused outside the policy (a body, a limit): how far they would have come is unknown. Never rejects. */
export async function compareWithShadow(parts: ShadowParts, decided: Decided): Promise<void> {
  const { descriptor, principal, facts, outcome, requestId, route } = decided
  const { metrics, log } = parts
  let enforced: Said | null = null
  try {
    enforced = said(decide(descriptor, principal, parts.enforced, facts))
    const isThePolicys = outcome === 'permitted' ? enforced !== null : enforced?.ruling === outcome.reason
    if (enforced === null || !isThePolicys) return
    const shadow = await shadowOf(parts, decided)
    if (shadow === null) {
      // Deciding would take a body that was never read, or the upstream.
      metrics.shadowDiffered(route, enforced.ruling, 'undecided')
      log.info({ requestId, route, enforced: shown(enforced), shadow: { ruling: 'undecided' } }, DIFFERS)
      return
    }
    const terms = enforced.code === null && shadow.code === null ? differing(enforced.terms, shadow.terms) : []
    if (verdict(enforced) === verdict(shadow) && terms.length === 0) return
    metrics.shadowDiffered(route, enforced.ruling, shadow.ruling)
    log.info(
      { requestId, route, enforced: shown(enforced), shadow: shown(shadow), ...(terms.length === 0 ? {} : { terms }) },
      DIFFERS,
    )
  } catch (error) {
    metrics.shadowDiffered(route, enforced?.ruling ?? 'internal', 'failed')
    log.error({ err: error, requestId, route }, 'the shadow policy could not be evaluated')
  }
}

const DIFFERS = 'the shadow policy would decide otherwise'

/** Null where the shadow needs a fact that can no longer be asked for. */
async function shadowOf({ shadow, recordOf }: ShadowParts, { descriptor, principal, facts }: Decided): Promise<Said | null> {
  const first = decide(descriptor, principal, shadow.rules, facts)
  const { threadId } = descriptor.ids
  if (first.outcome !== 'needs' || first.fact !== 'record' || threadId === undefined) return said(first)
  return said(decide(descriptor, principal, shadow.rules, { ...facts, record: await recordOf(threadId) }))
}

function said(decision: ReturnType<typeof decide>): Said | null {
  switch (decision.outcome) {
    case 'needs':
      return null
    case 'refused':
      return { ruling: decision.reason, code: decision.code, rule: decision.rule ?? null, terms: {} }
    case 'permitted':
      return permitted(decision)
  }
}

/** Under `observe`, what enforcing would have refused counts as refused: otherwise the comparison would show nothing. */
function permitted({ observed, rule }: Permit): Said {
  return { ruling: observed ?? 'permitted', code: null, rule, terms: termsOf(rule) }
}

function termsOf({ passes, limits }: Rule): Said['terms'] {
  const set = (names: ReadonlySet<string> | 'all' | null): string =>
    names === 'all' || names === null ? 'all' : JSON.stringify([...names].sort())
  return {
    forwardedProps: set(passes.forwardedProps),
    state: passes.state,
    tools: set(passes.tools),
    headers: set(passes.headers),
    ...messageTerms(passes.messages),
    interrupts: passes.interrupts,
    ...Object.fromEntries(Object.entries(limits).map(([name, limit]) => [`limits.${name}`, JSON.stringify(limit)])),
  }
}

function messageTerms(rules: MessageRules): Said['terms'] {
  const text = (value: unknown): string => (value instanceof Set ? JSON.stringify([...value].sort()) : JSON.stringify(value))
  return Object.fromEntries(Object.entries(rules).map(([name, value]) => [`messages.${name}`, text(value)]))
}

function differing(one: Said['terms'], other: Said['terms']): readonly string[] {
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((name) => one[name] !== other[name])
}

/** To a caller, refusals with the same code are the same, whatever their reasons. */
function verdict({ ruling, code }: Said): string {
  return code ?? ruling
}

function shown({ ruling, code, rule }: Said): object {
  return {
    ruling,
    ...(code === null ? {} : { code }),
    ...(rule === null ? {} : { rule: rule.name, ...(rule.line === undefined ? {} : { line: rule.line }) }),
  }
}
