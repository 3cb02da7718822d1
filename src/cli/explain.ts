/** `threadwarden explain`: traces one request without sending it, or decides a line of the audit log again. */
import { makeJsonReader, type JsonObject } from '../core/json/read.ts'
import { makeOwnerRecords } from '../http/pipeline/authorization.ts'
import { openIdentity } from '../snapshot/snapshot.ts'
import { userFault } from '../operator/revocation-form.ts'
import type { Prepared } from '../snapshot/load.ts'
import type { Presented } from '../tools/simulate/caller.ts'
import { explain as explainRequest, type Question, type Explanation } from '../tools/simulate/explain.ts'
import { explanationData, canonical, limitsOf, notesOn } from '../tools/simulate/explanation.ts'
import { CONFIG, defineCommand, EXIT, flag, jsonFlag, UsageError, value, type Values } from './command.ts'
import { printData, printEntries, type Entry } from './terminal.ts'
import { explainAudit, explainRequestId } from './explain-audit.ts'
import { loadConfig, readInput, readToken } from './input-files.ts'
import { withStore } from './with-store.ts'
import { suggestion } from '../document/nearest.ts'
import { mountsOf } from '../config/mounts.ts'
import type { Config } from '../config/schema.ts'
import type { Policy } from '../policy/compile.ts'
import type { Sent } from '../tools/simulate/recording-upstream.ts'
import {
  idleGrant,
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
  method: value('M', 'the HTTP method'),
  target: value('PATH', 'the path and query of the request line'),
  'token-file': value('F', "a file with the caller's token, which explain verifies"),
  claims: value('F', 'a JSON file with claims, used without verification instead of a token; "iss" names the issuer'),
  issuer: value('KEY', 'the issuer of the claims, by its id in the configuration (default: by "iss", or the only issuer)'),
  body: value('F', 'a JSON file with the body; an envelope on the base path'),
  owner: value(
    'USER',
    'the owner of the thread: issuer:subject, or anonymous; `threads owner ID` prints it (default: assumed unowned)',
  ),
  'from-store': flag('takes the owner and the grants of the thread from the store, which it does not change'),
  deleted: flag('the owner has deleted the thread'),
  granted: value('R', 'the grant of the caller, or of a group of the caller, on the thread: read or write'),
  history: value('H', 'none (default) or some: the history of an unowned thread in the upstream, for unknownThread: verify'),
  audit: value('LINE', 'decides a line of the audit log again by the current policy: the line, @FILE, or - for stdin'),
  'request-id': value(
    'ID',
    'decides the line with this id again: x-request-id of the answer. From the audit file of the configuration and its rotated files, or from --audit @FILE or -',
  ),
  json: jsonFlag('the explanation as JSON'),
} as const

type Options = Values<typeof OPTIONS>

/** The largest files that are read, in bytes: a body can be as large as the largest possible limit. */
const MOST = { claims: 1024 * 1024, body: 256 * 1024 ** 2 }

export const command = defineCommand({
  usage: ['--method M --target PATH', '--request-id ID', '--audit LINE'],
  about: `Explains how the gateway decides one request: the canonical target, the route, the caller, the facts, each rule that was tried,
the rule that decides, and the request to the upstream. It sends nothing to the upstream, and opens the store only for --from-store.
For a token, it fetches the keys of the issuer. It does not print the values of secrets.`,
  options: OPTIONS,
  exitCodes: {
    0: 'permitted (--audit: decided as before)',
    1: 'failed, for example an invalid configuration',
    3: 'refused (--audit: decided otherwise, or unknown)',
  },
  examples: [
    'threadwarden explain --method GET --target /api/copilotkit/threads --token-file token.txt',
    'threadwarden explain --method GET --target /api/copilotkit/threads/t-1/messages --claims alice.json --owner corp:bob',
    'threadwarden explain --request-id 3e7c0a52-6a0f-4f0e-9d4c-1f4b5f6f7a10',
    'tail -1 audit.jsonl | threadwarden explain --audit -',
  ],

  async run(values, terminal) {
    if (values['request-id'] !== undefined) return explainRequestId(terminal, values['request-id'], values)
    if (values.audit !== undefined) return explainAudit(terminal, values.audit, values)
    const asked = questionOf(values)
    const prepared = loadConfig(terminal, values)
    const question = { ...asked, presented: withOnlyIssuer(asked.presented, prepared.config) }
    requireKnown(question, prepared)
    const { config, policy, sources } = prepared
    const identity = openIdentity(config.identity, sources, Date.now)
    const surroundings = { config, policy, identity, clock: Date.now }
    const show = (explanation: Explanation): number => {
      if (values.json) printData(terminal, explanationData(explanation, question, config, policy))
      else printEntries(terminal, explanationEntries(explanation, question, config, policy))
      return isPermitted(explanation) ? EXIT.fine : EXIT.refused
    }
    if (!values['from-store']) return show(await explainRequest(question, surroundings))
    return withStore(terminal, prepared, { make: false }, async (store) =>
      show(await explainRequest(question, { ...surroundings, records: makeOwnerRecords(store, config.enforcement) })),
    )
  },
})

/** @throws UsageError for options that make no sense together */
function questionOf(options: Options): Question {
  const { method, target, body, owner, deleted, granted, history = 'none', 'from-store': isFromStore } = options
  if (method === undefined) throw new UsageError('--method M is missing')
  if (!/^[A-Z]{1,20}$/i.test(method)) throw new UsageError('--method must be an HTTP method, for example GET')
  if (target === undefined) throw new UsageError('--target PATH is missing')
  if (isFromStore && owner !== undefined) throw new UsageError('name either --from-store or --owner USER')
  if (deleted && owner === undefined) throw new UsageError('--deleted goes with --owner USER')
  if (granted !== undefined && owner === undefined) throw new UsageError('--granted goes with --owner USER')
  if (granted !== undefined && deleted) throw new UsageError('--granted does not go with --deleted, which ends all grants')
  if (granted !== undefined && granted !== 'read' && granted !== 'write') throw new UsageError('--granted must be read or write')
  if (owner !== undefined && owner !== 'anonymous' && userFault(owner, []) === 'form')
    throw new UsageError('--owner must be a user id, issuer:subject, or anonymous')
  if (history !== 'none' && history !== 'some') throw new UsageError('--history must be none or some')
  return {
    method: method.toUpperCase(),
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
  if (reading.outcome === 'refused') throw new UsageError(`--claims ${file} does not contain a JSON object (${reading.reason})`)
  return reading.value
}

function isPermitted({ outcome }: Explanation): boolean {
  return outcome === 'key-set' || outcome.outcome === 'permitted'
}

/** With one issuer, claims without `iss` are claims of that issuer. */
function withOnlyIssuer(presented: Presented, { authentication }: Config): Presented {
  const [only, ...others] = Object.keys(authentication.issuers)
  if (presented.kind !== 'claims' || presented.claims['iss'] !== undefined || others.length > 0) return presented
  return { ...presented, issuer: presented.issuer ?? only }
}

/** An option or the claims have to name the issuer. */
function requireKnown({ presented }: Question, { config }: Prepared): void {
  if (presented.kind !== 'claims' || config.authentication.mode === 'off') return
  const { issuer } = presented
  const keys = Object.keys(config.authentication.issuers)
  if (issuer !== undefined && !keys.includes(issuer))
    throw new UsageError(`--issuer ${issuer}: the configuration has no issuer "${issuer}": ${suggestion(issuer, keys, 'it has')}`)
  if (issuer === undefined && presented.claims['iss'] === undefined)
    throw new UsageError(`the claims have no "iss": name their issuer with --issuer KEY (${keys.join(', ')})`)
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
          ? [`is outside the public path${several ? 's' : ''} ${mounts.map(({ publicPath }) => publicPath || '/').join(', ')}`]
          : [canonical(target), ...(several ? [`upstream: ${mount.place.join('.')}`] : [])],
    ],
    ['route', routeLines(explanation)],
    ['caller', principal === null ? [] : [principalText(principal, policy.rules)]],
    ['facts', factLines(explanation, policy)],
    ['policy', [policy.file]],
    ['rules', ruleLines(explanation)],
    ['outcome', [outcomeLine(explanation, policy)], isPermitted(explanation) ? 'green' : 'red'],
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
    ...(ids.runId === undefined ? [] : [`run ${ids.runId}`]),
    ...(ids.memoryId === undefined ? [] : [`memory ${ids.memoryId}`]),
    ...(enveloped ? ['by envelope'] : []),
  ]
  return [[`${route.id} (${route.method})`, ...named].join(', ')]
}

function factLines({ facts, isFromStore, trace, descriptor, principal }: Explanation, { rules }: Policy): readonly string[] {
  if (facts === null || descriptor === null || principal === null) return []
  const { record, enforcement, unknownThread, userScoped } = facts
  const relation = trace?.relation ?? null
  const thread = `the thread ${descriptor.ids.threadId ?? ''}`
  const idle = idleGrant(facts, descriptor, principal, rules)
  return [
    ...(record === undefined || relation === null
      ? []
      : [
          record === null
            ? isFromStore
              ? `${thread} has no owner in the store`
              : `${thread}: no --owner given: assumed unowned`
            : `${thread} ${recordText(record, relation, idle)}`,
        ]),
    `enforcement ${enforcement}, unknownThread ${unknownThread}, userScoped ${userScoped}`,
  ]
}

function ruleLines({ trace, outcome }: Explanation): readonly string[] {
  if (trace === null) return [`none was tried${outcome === 'key-set' ? '' : ': the request is refused before the policy'}`]
  const observed = typeof outcome === 'object' && outcome.outcome === 'permitted' && outcome.observed !== null
  return trace.tried.length === 0
    ? ['the route has none']
    : trace.tried.map((one) => (observed ? observedText : triedText)(one, trace))
}

function outcomeLine({ outcome, facts }: Explanation, { rules }: Policy): string {
  if (outcome === 'key-set') return 'answered with the public keys of the gateway, for every caller'
  if (outcome.outcome === 'refused') {
    const { allow } = outcome
    return `refused: ${refusalText(outcome)}${allow === undefined ? '' : ` Methods of this path: ${allow.join(', ')}.`}`
  }
  if (facts === null) throw new Error('a permit without facts')
  return permitText(outcome, facts, rules)
}

function limitsLine(limits: ReturnType<typeof limitsOf>): string {
  return Object.entries(limits)
    .map(([name, limit]) => `${name} ${limitText(name, limit)}`)
    .join(', ')
}

function sentLines({ method, target, headers, passing, body, dropped }: Sent): readonly string[] {
  const text = body === null ? '' : JSON.stringify(body)
  return [
    `${method} ${target}`,
    ...headers.map(({ name, value }) => `${name}: ${value ?? '***'}`),
    ...(passing.length === 0 ? [] : [`forwarded unchanged: ${passing.join(', ')}`]),
    ...(text === '' ? [] : [text.length > MOST_BODY ? `${text.slice(0, MOST_BODY)}… (--json prints all of it)` : text]),
    ...(dropped.length === 0 ? [] : [`dropped: ${dropped.join(', ')}`]),
  ]
}
