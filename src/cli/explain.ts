/** `threadwarden explain`: traces one request without sending it, or decides a line of the audit log again. */
import { makeJsonReader, type JsonObject } from '../core/json/read.ts'
import { openIdentity } from '../snapshot/snapshot.ts'
import { userFault } from '../operator/revocation-form.ts'
import type { Prepared } from '../snapshot/load.ts'
import type { Presented } from '../tools/simulate/caller.ts'
import { explain as explainRequest, type Question, type Explanation } from '../tools/simulate/explain.ts'
import { explanationData, canonical, limitsOf, notesOn } from '../tools/simulate/explanation.ts'
import { CONFIG, defineCommand, EXIT, flag, jsonFlag, UsageError, value, type Values } from './command.ts'
import { printData, printEntries, type Entry } from './terminal.ts'
import { explainAudit } from './explain-audit.ts'
import { loadConfig, readInput, readToken } from './input-files.ts'
import { mountsOf } from '../config/mounts.ts'
import type { Config } from '../config/schema.ts'
import type { Policy } from '../policy/compile.ts'
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

const OPTIONS = {
  config: CONFIG,
  method: value('M', 'the HTTP method, in capitals'),
  target: value('PATH', 'path and query of the request line'),
  'token-file': value('F', "a file with the caller's token, which is verified"),
  claims: value('F', 'a JSON file with claims that are used without verification instead of a token; "iss" names the issuer'),
  issuer: value('KEY', 'the issuer of the claims, by its id in the configuration'),
  body: value('F', 'a JSON file with the body; on the base path, an envelope'),
  owner: value('USER', 'the owner of the thread: issuer:subject, or anonymous (default: no owner)'),
  deleted: flag('the owner has deleted the thread'),
  granted: value('R', 'the grant of the caller, or of a group of the caller, on the thread: read or write'),
  history: value('H', 'none (default) or some: what the upstream has of a thread without an owner, for unknownThread: verify'),
  audit: value('LINE', 'decides a line of the audit log again, by the current policy: the line, @FILE, or - for stdin'),
  json: jsonFlag('all of it as JSON'),
} as const

type Options = Values<typeof OPTIONS>

/** The largest files that are read, in bytes: a body can be as large as the largest possible limit. */
const MOST = { claims: 1024 * 1024, body: 256 * 1024 ** 2 }

export const command = defineCommand({
  usage: ['--method M --target PATH', '--audit LINE'],
  about: `Shows each step of a request: the canonical target, the route, the caller, the facts, each rule that was tried and the one that
decides, and what would be sent upstream. Nothing is sent there, and the store is neither read nor written. For a token, the
keys of its issuer are fetched. Values of secrets are not printed.`,
  options: OPTIONS,
  exitCodes: [
    'permitted (--audit: decided as before)',
    'refused (--audit: not as before), an invalid configuration or a failure',
  ],

  async run(values, terminal) {
    if (values.audit !== undefined) return explainAudit(terminal, values.audit, values)
    const question = questionOf(values)
    const prepared = loadConfig(terminal, values)
    requireKnown(values, question, prepared)
    const { config, policy, sources } = prepared
    const identity = openIdentity(config.identity, sources, Date.now)
    const explanation = await explainRequest(question, { config, policy, identity, clock: Date.now })
    if (values.json) printData(terminal, explanationData(explanation, question, config, policy))
    else printEntries(terminal, explanationEntries(explanation, question, config, policy))
    const { outcome } = explanation
    return outcome === 'key-set' || outcome.outcome === 'permitted' ? EXIT.fine : EXIT.failure
  },
})

/** @throws UsageError for options that make no sense together */
function questionOf(options: Options): Question {
  const { method, target, body, owner, deleted, granted, history = 'none' } = options
  if (method === undefined) throw new UsageError('--method M is missing')
  if (!/^[A-Z]{1,20}$/.test(method)) throw new UsageError('--method is an HTTP method in capitals')
  if (target === undefined) throw new UsageError('--target PATH is missing')
  if (deleted && owner === undefined) throw new UsageError('--deleted goes with --owner USER')
  if (granted !== undefined && owner === undefined) throw new UsageError('--granted goes with --owner USER')
  if (granted !== undefined && deleted) throw new UsageError('--granted does not go with --deleted, which ends all grants')
  if (granted !== undefined && granted !== 'read' && granted !== 'write') throw new UsageError('--granted is read or write')
  if (owner !== undefined && owner !== 'anonymous' && userFault(owner, []) === 'form')
    throw new UsageError('--owner is a user id, issuer:subject, or anonymous')
  if (history !== 'none' && history !== 'some') throw new UsageError('--history is none or some')
  return {
    method,
    target,
    presented: presentedBy(options),
    body: body === undefined ? new Uint8Array() : readInput('--body', body, MOST.body),
    record: owner === undefined ? null : { owner, deleted, ...(granted === undefined ? {} : { granted }) },
    upstreamHistory: history,
  }
}

function presentedBy({ 'token-file': tokenFile, claims, issuer }: Options): Presented {
  if (tokenFile !== undefined && claims !== undefined) throw new UsageError('name either --token-file F or --claims F')
  if (issuer !== undefined && claims === undefined) throw new UsageError('--issuer KEY goes with --claims F')
  if (tokenFile !== undefined) return { kind: 'token', token: readToken(tokenFile) }
  return claims === undefined ? { kind: 'nothing' } : { kind: 'claims', claims: claimsFrom(claims), issuer }
}

function claimsFrom(file: string): JsonObject {
  const reader = makeJsonReader()
  const reading = reader.push(readInput('--claims', file, MOST.claims)) ?? reader.end()
  if (reading.outcome === 'refused') throw new UsageError(`--claims ${file} holds no JSON object (${reading.reason})`)
  return reading.value
}

/** An option or the claims have to name the issuer. */
function requireKnown({ issuer }: Options, { presented }: Question, { config }: Prepared): void {
  if (presented.kind !== 'claims' || config.authentication.mode === 'off') return
  const keys = Object.keys(config.authentication.issuers)
  if (issuer !== undefined && !keys.includes(issuer))
    throw new UsageError(`there is no issuer "${issuer}": it has ${keys.join(', ')}`)
  if (issuer === undefined && presented.claims['iss'] === undefined)
    throw new UsageError(`the claims have no "iss": --issuer KEY says whose they are (${keys.join(', ')})`)
}

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
