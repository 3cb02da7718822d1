/** `threadwarden diff`: shows which decisions change from one policy to another. */
import { loadPolicy } from '../policy/compile.ts'
import { compare, type Comparison, type Difference } from '../tools/simulate/diff.ts'
import { placeText } from '../tools/simulate/place.ts'
import { surroundingsOf } from '../tools/simulate/surroundings.ts'
import type { Verdict } from '../tools/simulate/verdict.ts'
import { CODES } from '../core/reasons.ts'
import { EXIT, printData, printLines, readArguments, UsageError, type Command } from './command.ts'
import { loaded, sayFaults } from './input-files.ts'
import { listed, paintFor, type Entry, type Paint } from './terminal.ts'

/** The most callers that are named for one difference; --json names all. */
const MOST_CALLERS = 6

export const diff: Command = {
  summary: 'compares two policies: which decisions change',
  help: `threadwarden diff --config FILE OLD NEW [--json]

Decides the same requests by two policy files and tells what differs: who may do what, what a refusal looks like, what of a
request passes, and which limits apply. The requests are every route and method, with every agent that a policy names and one
that none names, on own, shared, unknown and foreign threads, deleted ones too; the callers are made from the roles,
permissions, claims and issuers that the policies name. Issuers, mode and userScoped are the configuration's; both are taken as enforced.

  --config FILE  the configuration (YAML or JSON)
  OLD NEW        policy files
  --json         prints {"same", "decisions", "callers", "agents", "cut", "differences"} on stdout

Exit codes: 0 no difference, 1 differences, an invalid file or more to compare than there is room for, 2 wrong usage.`,

  run(args) {
    const { values, positionals } = readArguments(args, { config: { type: 'string' }, json: { type: 'boolean' } })
    const [before, after, more] = positionals
    if (before === undefined || after === undefined || more !== undefined) throw new UsageError('name two policy files: OLD NEW')
    const json = values.json === true
    const prepared = loaded(values.config, json)
    if (prepared === null) return Promise.resolve(EXIT.failure)
    const surroundings = surroundingsOf(prepared.config)
    const policies = [before, after].map((file) => loadPolicy(file, surroundings))
    const [one, other] = policies
    if (one?.ok !== true || other?.ok !== true) {
      const faults = policies.flatMap((policy) => (policy.ok ? [] : policy.faults))
      sayFaults(before === after ? faults.slice(0, faults.length / 2) : faults, json)
      return Promise.resolve(EXIT.failure)
    }
    const comparison = compare(one.value.policy, other.value.policy, prepared.config)
    const same = comparison.differences.length === 0
    if (json) printData({ same, ...comparison })
    else printLines(text(comparison, paintFor(process.stdout, process.env)))
    return Promise.resolve(same && comparison.cut.length === 0 ? EXIT.fine : EXIT.failure)
  },
}

function text({ differences, decisions, callers, cut }: Comparison, paint: Paint): string {
  const count =
    differences.length === 0 ? 'no difference' : differences.length === 1 ? '1 difference' : `${differences.length} differences`
  return [
    ...differences.flatMap((one) => [headline(one, paint), listed(entries(one), paint), '']),
    `${count} in ${decisions} decisions for ${callers} kinds of callers`,
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
