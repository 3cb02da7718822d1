/** Formats an explanation as text, in the order in which the gateway handles a request. */
import { mountsOf } from '../config/mounts.ts'
import type { Config } from '../config/schema.ts'
import type { Policy } from '../policy/policy.ts'
import type { Explanation, Question } from '../tools/simulate/explain.ts'
import { canonical, limitsOf, notesOn } from '../tools/simulate/explanation.ts'
import type { Sent } from '../tools/simulate/recording-upstream.ts'
import {
  limitText,
  observedText,
  permitText,
  principalText,
  recordText,
  refusalText,
  triedText,
} from '../tools/simulate/decision-text.ts'
import type { Entry } from './terminal.ts'

const MOST_BODY = 2000

export function explanationEntries(
  explanation: Explanation,
  question: Question,
  config: Config,
  policy: Policy,
): readonly Entry[] {
  const { target, mount, principal, outcome, sent } = explanation
  const mounts = mountsOf(config)
  const several = mounts.length > 1
  const permit = typeof outcome === 'object' && outcome.outcome === 'permitted' ? outcome : null
  return [
    [
      'target',
      target === null
        ? ['has no canonical form']
        : mount === null
          ? [`lies outside the public path${several ? 's' : ''} ${mounts.map(({ publicPath }) => publicPath || '/').join(', ')}`]
          : [canonical(target), ...(several ? [`goes to ${mount.place.join('.')}`] : [])],
    ],
    ['route', routeLines(explanation)],
    ['caller', principal === null ? [] : [principalText(principal, policy.rules)]],
    ['facts', factLines(explanation)],
    ['policy', [policy.file]],
    ['rules', ruleLines(explanation)],
    ['outcome', [outcomeLine(explanation, policy)]],
    ['limits', permit === null ? [] : [limitsLine(limitsOf(permit, config))]],
    ['upstream', sent === null ? [] : sentLines(sent)],
    ['notes', notesOn(explanation, question, policy)],
  ]
}

function routeLines({ descriptor, enveloped }: Explanation): readonly string[] {
  if (descriptor === null) return []
  const { route, ids } = descriptor
  const named = [
    ...(ids.agentId === undefined ? [] : [`agent ${ids.agentId}`]),
    ...(ids.threadId === undefined ? [] : [`thread ${ids.threadId}`]),
    ...(ids.memoryId === undefined ? [] : [`memory ${ids.memoryId}`]),
    ...(enveloped ? ['by envelope'] : []),
  ]
  return [[`${route.id} (${route.method})`, ...named].join(', ')]
}

function factLines({ facts, trace, descriptor }: Explanation): readonly string[] {
  if (facts === null) return []
  const { record, enforcement, unknownThread, userScoped } = facts
  const relation = trace?.relation ?? null
  const thread = descriptor?.ids.threadId ?? ''
  return [
    ...(record === undefined || relation === null ? [] : [`the thread ${thread} ${recordText(record, relation)}`]),
    `enforcement ${enforcement}, unknownThread ${unknownThread}, userScoped ${userScoped}`,
  ]
}

function ruleLines({ trace, outcome }: Explanation): readonly string[] {
  if (trace === null) return ['none was asked']
  const observed = typeof outcome === 'object' && outcome.outcome === 'permitted' && outcome.observed !== null
  return trace.tried.length === 0 ? ['there is none'] : trace.tried.map(observed ? observedText : triedText)
}

function outcomeLine({ outcome, facts }: Explanation, { rules }: Policy): string {
  if (outcome === 'key-set') return 'answered with the public keys of the gateway, whoever asks'
  if (outcome.outcome === 'refused') {
    const { allow } = outcome
    return `refused: ${refusalText(outcome)}${allow === undefined ? '' : ` The path takes ${allow.join(', ')}.`}`
  }
  if (facts === null) throw new Error('a permit without facts')
  return permitText(outcome, facts, rules)
}

function limitsLine(limits: ReturnType<typeof limitsOf>): string {
  return Object.entries(limits)
    .map(([name, limit]) => `${name} ${limitText(limit)}${name === 'body' ? ' bytes' : ''}`)
    .join(', ')
}

function sentLines({ method, target, headers, passing, body, dropped }: Sent): readonly string[] {
  const text = body === null ? '' : JSON.stringify(body)
  return [
    `${method} ${target}`,
    ...headers.map(({ name, value }) => `${name}: ${value ?? '***'}`),
    ...(passing.length === 0 ? [] : [`as they come: ${passing.join(', ')}`]),
    ...(text === '' ? [] : [text.length > MOST_BODY ? `${text.slice(0, MOST_BODY)}… (--json has all of it)` : text]),
    ...(dropped.length === 0 ? [] : [`dropped: ${dropped.join(', ')}`]),
  ]
}
