/** `threadwarden diff`: shows which decisions change from one policy to another. */
import { Sources } from '../document/sources.ts'
import { loadPolicy } from '../policy/compile.ts'
import { compare, type Comparison, type Difference } from '../tools/simulate/diff.ts'
import { placeText } from '../tools/simulate/decision-text.ts'
import { surroundingsOf } from '../config/load.ts'
import type { Verdict } from '../tools/simulate/matrix.ts'
import { CODES } from '../core/reasons.ts'
import { CONFIG, defineCommand, EXIT, jsonFlag, UsageError } from './command.ts'
import { counted } from './format-thread.ts'
import { listed, paintFor, printData, printLines, type Entry, type Paint } from './terminal.ts'
import { loadConfig, printErrors } from './input-files.ts'

/** The most callers that are named for one difference; --json names all. */
const MOST_CALLERS = 6

export const command = defineCommand({
  about: `Decides the same requests by two policy files and shows each difference: who may do what, what a refusal looks like, which
parts of a request are forwarded, and which limits apply. The requests are every route and method, on own, shared, unowned,
foreign and deleted threads, with every agent that a policy names and one that no policy names. The callers have the roles,
permissions, claims and issuers that the policies name. Issuers, mode and userScoped are those of the configuration; both
policies are compared as enforced.`,
  positionals: { OLD: 'a policy file', NEW: 'the policy file to compare with it' },
  options: { config: CONFIG, json: jsonFlag('{"same", "decisions", "callers", "agents", "cut", "differences"}') },
  exitCodes: ['no difference', 'differences, an invalid file, or too many requests to compare all of them'],

  run(values, terminal, [before, after, more]) {
    if (before === undefined || after === undefined || more !== undefined) throw new UsageError('name two policy files: OLD NEW')
    const { config } = loadConfig(terminal, values)
    const surroundings = surroundingsOf(config)
    const sources = new Sources()
    const policies = [before, after].map((file) => loadPolicy(sources, file, surroundings))
    const [one, other] = policies
    if (one?.ok !== true || other?.ok !== true) {
      const faults = policies.flatMap((policy) => (policy.ok ? [] : policy.faults))
      printErrors(terminal, before === after ? faults.slice(0, faults.length / 2) : faults, values)
      return EXIT.failure
    }
    const comparison = compare(one.value.policy, other.value.policy, config)
    const same = comparison.differences.length === 0
    if (values.json) printData(terminal, { same, ...comparison })
    else printLines(terminal, text(comparison, paintFor(terminal.stdout, terminal.env)))
    return same && comparison.cut.length === 0 ? EXIT.fine : EXIT.failure
  },
})

function text({ differences, decisions, callers, cut }: Comparison, paint: Paint): string {
  return [
    ...differences.flatMap((one) => [headline(one, paint), listed(entries(one), paint), '']),
    `${differences.length === 0 ? 'no difference' : counted(differences.length, 'difference')} in ${decisions} decisions for ${callers} kinds of callers`,
    ...(cut.length === 0
      ? []
      : [paint('yellow', `not all was compared: there are more ${cut.join(' and ')} than there is room for`)]),
  ].join('\n')
}

function headline({ before, after }: Difference, paint: Paint): string {
  if (before.outcome === after.outcome)
    return paint('yellow', before.outcome === 'permitted' ? 'passes otherwise' : 'refused otherwise')
  return after.outcome === 'permitted' ? paint('green', 'opened') : paint('red', 'closed')
}

function entries({ routes, threads, agents, callers, before, after }: Difference): readonly Entry[] {
  const more = callers.length - MOST_CALLERS
  const named = more > 1 ? [...callers.slice(0, MOST_CALLERS), `and ${more} more (--json names them)`] : callers
  return [
    ['  routes', [routes.join(', ')]],
    ['  threads', threads.length === 0 ? [] : [threads.join('; ')]],
    ['  agents', agents.length === 0 ? [] : [agents.join(', ')]],
    ['  callers', named],
    ['  before', verdictLines(before)],
    ['  after', verdictLines(after)],
  ]
}

function verdictLines(verdict: Verdict): readonly string[] {
  if (verdict.outcome === 'refused') {
    const { code, reason, rule } = verdict
    return [`refused: ${CODES[code].status} ${code} (${reason})${rule === null ? '' : ` by ${placeText(rule)}`}`]
  }
  return [`permitted by ${placeText(verdict.rule)}`, ...Object.entries(verdict.passes).map(([name, what]) => `${name}: ${what}`)]
}
