/** `threadwarden explain`: traces one request without sending it, or decides a line of the audit log again. */
import type { OwnerRecord } from '../core/decide/decide.ts'
import { makeJsonReader, type JsonObject } from '../core/json/read.ts'
import type { Right } from '../core/decide/sharing.ts'
import { openIdentity } from '../snapshot/snapshot.ts'
import { userFault } from '../operator/revocation-form.ts'
import type { Prepared } from '../snapshot/load.ts'
import type { Presented } from '../tools/simulate/caller.ts'
import { explain as explainRequest, type Question } from '../tools/simulate/explain.ts'
import { explanationData } from '../tools/simulate/explanation.ts'
import { EXIT, printData, printLines, readOptions, UsageError, type Command } from './command.ts'
import { explainAudit } from './explain-audit.ts'
import { explanationEntries } from './format-explanation.ts'
import { fileOf, loaded, tokenFrom } from './input-files.ts'
import { listed, paintFor } from './terminal.ts'

const OPTIONS = {
  config: { type: 'string' },
  method: { type: 'string' },
  target: { type: 'string' },
  'token-file': { type: 'string' },
  claims: { type: 'string' },
  issuer: { type: 'string' },
  body: { type: 'string' },
  owner: { type: 'string' },
  deleted: { type: 'boolean' },
  granted: { type: 'string' },
  history: { type: 'string' },
  audit: { type: 'string' },
  json: { type: 'boolean' },
} as const

type Options = ReturnType<typeof readOptions<typeof OPTIONS>>

/** The largest files that are read, in bytes: a body can be as large as the largest possible limit. */
const MOST = { claims: 1024 * 1024, body: 256 * 1024 ** 2 }

export const explain: Command = {
  summary: 'shows how one request would be decided, and why',
  help: `threadwarden explain --config FILE --method M --target PATH [--token-file F | --claims F [--issuer KEY]]
                      [--body F] [--owner USER [--deleted | --granted read|write]]
                      [--history none|some] [--json]
threadwarden explain --config FILE --audit LINE [--json]

Goes the way of a request step by step: the canonical target, the route, the caller, the facts, every rule that was tried and
the one that decides, and what would be sent upstream. Nothing is sent there, and the store is neither read nor written; for
a token the keys of its issuer are fetched. Values of secrets are not printed.

  --config FILE    the configuration (YAML or JSON)
  --method M       the HTTP method, in capitals
  --target PATH    path and query as they would stand in the request line
  --token-file F   a file with the caller's token, which is verified
  --claims F       a JSON file with claims that are taken as given, in place of a token: of the issuer that "iss" names
  --issuer KEY     or of this one, by its key in the configuration
  --body F         a JSON file with the body; on the base path, an envelope
  --owner USER     who owns the thread: issuer:subject, or anonymous. Without it nobody does
  --deleted        the owner has deleted it
  --granted R      it was granted to the caller, or to a group of theirs: for read or write
  --history H      with unknownThread: verify, what the upstream holds of a thread without an owner: none (default) or some
  --audit LINE     decides a line of the audit log again, by the policy of now: the line, @FILE, or - for stdin
  --json           prints all of it as data on stdout

Exit codes: 0 permitted (with --audit: decided as before), 1 refused (decided otherwise, or nobody can say), an invalid
configuration or a failure, 2 wrong usage.`,

  async run(args) {
    const options = readOptions(args, OPTIONS)
    const json = options.json === true
    if (options.audit !== undefined) return explainAudit(options.config, options.audit, otherThan(options), json)
    const question = questionOf(options)
    const prepared = loaded(options.config, json)
    if (prepared === null) return EXIT.failure
    requireKnown(options, question, prepared)
    const { config, policy } = prepared
    const identity = openIdentity(config.identity, Date.now)
    const explanation = await explainRequest(question, { config, policy, identity, clock: Date.now })
    if (json) printData(explanationData(explanation, question, config, policy))
    else printLines(listed(explanationEntries(explanation, question, config, policy), paintFor(process.stdout, process.env)))
    const { outcome } = explanation
    return outcome === 'key-set' || outcome.outcome === 'permitted' ? EXIT.fine : EXIT.failure
  },
}

function otherThan(options: Options): readonly string[] {
  return Object.keys(options).filter((name) => !['config', 'audit', 'json'].includes(name))
}

/** @throws UsageError for options that make no sense together */
function questionOf(options: Options): Question {
  const { method, target, body, owner, deleted, granted, history = 'none' } = options
  if (method === undefined) throw new UsageError('--method M is missing')
  if (!/^[A-Z]{1,20}$/.test(method)) throw new UsageError('--method is an HTTP method in capitals')
  if (target === undefined) throw new UsageError('--target PATH is missing')
  if (deleted === true && owner === undefined) throw new UsageError('--deleted goes with --owner USER')
  if (granted !== undefined && owner === undefined) throw new UsageError('--granted goes with --owner USER')
  if (granted !== undefined && deleted === true)
    throw new UsageError('--granted does not go with --deleted, which ends all grants')
  if (granted !== undefined && granted !== 'read' && granted !== 'write') throw new UsageError('--granted is read or write')
  if (history !== 'none' && history !== 'some') throw new UsageError('--history is none or some')
  return {
    method,
    target,
    presented: presentedBy(options),
    body: body === undefined ? new Uint8Array() : fileOf('--body', body, MOST.body),
    record: recordOf(owner, deleted === true, granted),
    upstreamHistory: history,
  }
}

function presentedBy({ 'token-file': tokenFile, claims, issuer }: Options): Presented {
  if (tokenFile !== undefined && claims !== undefined) throw new UsageError('name either --token-file F or --claims F')
  if (issuer !== undefined && claims === undefined) throw new UsageError('--issuer KEY goes with --claims F')
  if (tokenFile !== undefined) return { kind: 'token', token: tokenFrom(tokenFile) }
  return claims === undefined ? { kind: 'nothing' } : { kind: 'claims', claims: claimsFrom(claims), issuer }
}

function claimsFrom(file: string): JsonObject {
  const reader = makeJsonReader()
  const reading = reader.push(fileOf('--claims', file, MOST.claims)) ?? reader.end()
  if (reading.outcome === 'refused') throw new UsageError(`--claims ${file} holds no JSON object (${reading.reason})`)
  return reading.value
}

function recordOf(owner: string | undefined, deleted: boolean, granted: Right | undefined): OwnerRecord {
  if (owner === undefined) return null
  if (owner !== 'anonymous' && userFault(owner, []) === 'form')
    throw new UsageError('--owner is a user id, issuer:subject, or anonymous')
  return granted === undefined ? { owner, deleted } : { owner, deleted, granted }
}

/** An option or the claims have to name the issuer. */
function requireKnown({ issuer }: Options, { presented }: Question, { config }: Prepared): void {
  if (presented.kind !== 'claims' || config.authentication.mode === 'off') return
  const keys = Object.keys(config.authentication.issuers)
  if (issuer !== undefined && !keys.includes(issuer))
    throw new UsageError(`there is no issuer "${issuer}": it has ${keys.join(', ')}`)
  if (issuer === undefined && presented.claims['iss'] === undefined) {
    throw new UsageError(`the claims have no "iss": --issuer KEY says whose they are (${keys.join(', ')})`)
  }
}
