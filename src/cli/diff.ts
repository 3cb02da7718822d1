/** `threadwarden diff`: shows which decisions change from one policy to another. */
import { Sources } from '../document/sources.ts'
import { loadPolicy } from '../policy/compile.ts'
import { compare, type Comparison, type Difference } from '../tools/simulate/diff.ts'
import { ruleText } from '../tools/simulate/decision-text.ts'
import { surroundingsOf } from '../config/load.ts'
import { policyFile, policyReferenceFault } from '../config/policy-file.ts'
import type { Verdict } from '../tools/simulate/matrix.ts'
import { CODES } from '../core/reasons.ts'
import { CONFIG, defineCommand, EXIT, jsonFlag, UsageError } from './command.ts'
import { counted } from './format-thread.ts'
import { listed, paintFor, printData, printLines, type Entry, type Paint } from './terminal.ts'
import { loadConfig, printErrors } from './input-files.ts'

/** The most callers that are named for one difference; --json names all. */
const MOST_CALLERS = 6

export const command = defineCommand({
  about: `Compares two policies: it decides the same requests by both and shows each difference. A difference is who is permitted, how a
refusal looks, which parts of a request are forwarded, or which limits apply.

The requests use every route and method, on own, shared, unowned, foreign and deleted threads, with every agent that a policy names
and one more. The callers have the roles, permissions, claims and issuers that the policies name. Issuers, mode and userScoped come
from the configuration. Both policies are compared as with enforcement: enforce.`,
  positionals: { OLD: 'a policy file, or builtin:NAME for a policy of the program', NEW: 'the policy to compare with it' },
  options: { config: CONFIG, json: jsonFlag('{"same", "decisions", "callers", "agents", "cut", "differences"}') },
  exitCodes: { 0: 'no difference', 1: 'differences, an invalid file, or too many requests to compare all of them' },
  examples: ['threadwarden diff policy.yaml new-policy.yaml', 'threadwarden diff builtin:default policy.yaml'],

  run(values, terminal, [before, after, more]) {
    if (before === undefined || after === undefined || more !== undefined)
      throw new UsageError('name two policy files: OLD and NEW')
    const { config } = loadConfig(terminal, values)
    const surroundings = surroundingsOf(config)
    const sources = new Sources()
    const policies = [before, after].map((reference) => loadPolicy(sources, policyPath(reference), surroundings))
    const [one, other] = policies
    if (one?.ok !== true || other?.ok !== true) {
      const faults = policies.flatMap((policy) => (policy.ok ? [] : policy.faults))
      printErrors(terminal, before === after ? faults.slice(0, faults.length / 2) : faults, values)
      return EXIT.failure
    }
    const comparison = compare(one.value.policy, other.value.policy, config)
    const same = comparison.differences.length === 0
    if (values.json) printData(terminal, { same, ...comparison })
    else printLines(terminal, text([before, after], comparison, paintFor(terminal.stdout, terminal.env)))
    return same && comparison.cut.length === 0 ? EXIT.fine : EXIT.failure
  },
})

/** @throws UsageError for a builtin policy that does not exist */
function policyPath(reference: string): string {
  const fault = policyReferenceFault(reference)
  if (fault !== null) throw new UsageError(`${reference} ${fault.replace(' | ', ': ')}`)
  return policyFile(reference, '.').path
}

function text(
  [before, after]: readonly [string, string],
  { differences, decisions, callers, cut }: Comparison,
  paint: Paint,
): string {
  const files: readonly Entry[] = [
    ['before', [before]],
    ['after', [after]],
  ]
  return [
    listed(files, paint),
    '',
    ...differences.flatMap((one) => [headline(one, paint), listed(entries(one), paint), '']),
    `${differences.length === 0 ? 'no difference' : counted(differences.length, 'difference')} in ${decisions} decisions for ${callers} kinds of callers`,
    ...(cut.length === 0 ? [] : [paint('yellow', `not everything was compared: there are too many ${cut.join(' and ')}`)]),
  ].join('\n')
}

function headline({ before, after }: Difference, paint: Paint): string {
  if (before.outcome === after.outcome)
    return paint('yellow', before.outcome === 'permitted' ? 'permitted differently' : 'refused differently')
  return after.outcome === 'permitted' ? paint('green', 'opened') : paint('red', 'closed')
}

function entries({ routes, threads, agents, callers, before, after }: Difference): readonly Entry[] {
  const more = callers.length - MOST_CALLERS
  const named = more > 1 ? [...callers.slice(0, MOST_CALLERS), `and ${more} more (--json names them)`] : callers
  return [
    ['  routes', [routes.join(', ')]],
    ['  threads', threads.length === 0 ? [] : [threads.map((one) => (one === 'unknown' ? 'unowned' : one)).join('; ')]],
    ['  agents', agents.length === 0 ? [] : [agents.join(', ')]],
    ['  callers', named],
    ['  before', verdictLines(before)],
    ['  after', verdictLines(after)],
  ]
}

function verdictLines(verdict: Verdict): readonly string[] {
  if (verdict.outcome === 'refused') {
    const { code, reason, rule } = verdict
    return [`refused: ${CODES[code].status} ${code} (${reason})${rule === null ? '' : ` by ${ruleText(rule)}`}`]
  }
  return [`permitted by ${ruleText(verdict.rule)}`, ...Object.entries(verdict.passes).map(([name, what]) => `${name}: ${what}`)]
}
