/**
 * The property: the gateway refuses, or what it sends is served by the route of the server that it decided on, and accesses, changes
 * and tells nothing of another user: neither in the answer, nor in what the run does, nor in what a later request of the owner finds.
 */
import type { RouteDescriptor } from '../../../src/core/route/classify.ts'
import { LANGGRAPH_ROUTES } from '../../../src/core/route/langgraph-routes.ts'
import { answerOf } from '../../support/port.ts'
import type { Written } from '../message.ts'
import type { Finding } from '../tally.ts'
import { PUBLIC_PATH, type LangGraphCase, type PolicyName } from './case.ts'
import { makeGate, type Gate, type Outcome, type Sent } from './gate.ts'
import type { Resolved } from './route-watch.ts'
import { startServer, type LangGraphServer } from './server.ts'
import { ASSISTANT, FOREIGN, isOthers, OWN, runOf, SECRETS, SHARED } from './world.ts'

/** A request that reached the server. */
interface Reached {
  readonly sent: Sent
  readonly resolved: Resolved | null
  readonly accesses: readonly string[]
  readonly text: string
}

export type Examine = (one: LangGraphCase) => Promise<Finding>

/** Starts the server. One for a process: it keeps its state in its modules. */
export async function makeExamine(): Promise<Examine> {
  const server = await startServer()
  let reached: Reached[] = []
  const makeGateFor = makeGate(async (sent) => {
    const answered = await server.answer(sent)
    if (answered === null) throw new Error(`what was sent is no request: ${sent.method} ${sent.target}`)
    const { status, headers, text, resolved } = answered
    reached.push({ sent, resolved, accesses: server.accesses(), text })
    return answerOf(status, text, headers)
  })
  const gates: Readonly<Record<PolicyName, Gate>> = { default: makeGateFor('default'), open: makeGateFor('open') }

  return async (one) => {
    const written = writtenOf(one)
    server.reset()
    const direct = await server.answer(withoutGateway(written))
    const averted = server.accesses()
    const lost = server.changes()
    server.reset()
    reached = []
    const outcome = await gates[one.policy](written)
    const served = reached.filter(({ sent }) => !sent.isQuestion)
    const faults = [
      ...reached.flatMap(questionFaults),
      ...served.flatMap((request) => servedFaults(request, outcome.descriptor)),
      ...writtenFaults(served, direct?.resolved, outcome.descriptor),
      ...checkpointFaults(served, written, outcome.descriptor),
      ...(await laterFaults(server, served, outcome)),
      ...toldFaults(outcome.told, one),
      ...server.changes(),
    ]
    return {
      outcome: outcome.reason === 'permitted' ? (outcome.descriptor?.route.id ?? 'answered by the gateway') : outcome.reason,
      group: one.policy,
      permitted: served.length > 0,
      asWritten: averted.length + lost.length > 0 ? (averted[0] ?? lost[0]) : undefined,
      faults: [...new Set(faults)],
    }
  }
}

function writtenOf({ method, target, headers, body, chunked }: LangGraphCase): Written {
  if (body === null) return { method, target, headers, body }
  const framing = chunked ? (['transfer-encoding', 'chunked'] as const) : (['content-length', String(body.length)] as const)
  return { method, target, headers: [...headers, framing], body: Buffer.from(body, 'latin1') }
}

const FRAMING = ['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade', 'expect', 'te', 'trailer']

/** The request as the server would get it without the gateway. */
function withoutGateway({ method, target, headers, body }: Written): Written {
  return {
    method,
    target: target.startsWith(PUBLIC_PATH) ? target.slice(PUBLIC_PATH.length) : target,
    headers: headers.filter(([name]) => !FRAMING.includes(name.toLowerCase())),
    body,
  }
}

/** `/threads/:/runs/:`, for what the gateway and the server call `/threads/:threadId/runs/:runId` in their own ways. */
function pattern(words: readonly string[]): string {
  return words.map((word) => `/${word.startsWith(':') ? ':' : word}`).join('')
}

const OPEN_PATTERNS: ReadonlySet<string> = new Set(LANGGRAPH_ROUTES.map(({ path }) => pattern(path)))

const QUESTIONS: ReadonlySet<string> = new Set(['/threads/:', '/threads/:/runs/:'])

function patternOf({ path, params }: Resolved): string {
  const words = path.split('/').slice(1)
  return pattern(words.filter((word) => !word.endsWith('?') || params[word.slice(1, -1)] !== undefined))
}

/** A question of the gateway reads one thread or run. */
function questionFaults({ sent, resolved }: Reached): readonly string[] {
  if (!sent.isQuestion) return []
  const asked = resolved === null ? 'nothing' : patternOf(resolved)
  return sent.method === 'GET' && QUESTIONS.has(asked) ? [] : [`the gateway asked ${sent.method} ${sent.target}: ${asked}`]
}

const NAMES = {
  thread_id: 'threadId',
  run_id: 'runId',
  checkpoint_id: 'checkpointId',
  assistant_id: 'agentId',
  namespace: 'namespace',
}

function servedFaults({ sent, resolved, accesses }: Reached, descriptor: RouteDescriptor | null): readonly string[] {
  const faults = accesses.map((access) => `what was sent accessed ${access}`)
  if (descriptor === null) return [...faults, 'something was sent without a decision']
  if (resolved === null) return [...faults, `no route of the server serves ${sent.method} ${sent.target}`]
  const found = patternOf(resolved)
  const isSearch = found === '/threads/search'
  // A count is made of searches.
  const expected = descriptor.route.id === 'langgraph/threads/count' ? '/threads/search' : pattern(descriptor.route.path)
  if (!OPEN_PATTERNS.has(found)) faults.push(`the server ran ${found}, which is closed`)
  if (found !== expected) faults.push(`decided on ${expected}, and the server ran ${found}`)
  for (const [name, value] of Object.entries(resolved.params)) {
    const decided = descriptor.ids[NAMES[name as keyof typeof NAMES] as keyof RouteDescriptor['ids']]
    if (value !== decided) faults.push(`decided on ${name} ${decided}, and the server read ${value}`)
  }
  if (isSearch || found === '/threads/count') faults.push(...searchFaults(sent))
  return faults
}

const READABLE: readonly unknown[] = [...OWN, SHARED]

function searchFaults({ body }: Sent): readonly string[] {
  const ids = memberOf(read(body), 'ids')
  if (!Array.isArray(ids) || ids.length === 0) return [`a search without a condition on ids: ${JSON.stringify(ids)}`]
  return ids.every((id) => READABLE.includes(id)) ? [] : [`a search for ${JSON.stringify(ids)}`]
}

/** The gateway changes no meaning: the server would have read the same route and ids in what the caller wrote. */
function writtenFaults(
  served: readonly Reached[],
  asWritten: Resolved | null | undefined,
  descriptor: RouteDescriptor | null,
): readonly string[] {
  if (served.length === 0 || descriptor === null || asWritten === undefined) return []
  const found = asWritten === null ? 'nothing' : patternOf(asWritten)
  return found === pattern(descriptor.route.path)
    ? []
    : [`the caller wrote ${found} for the server, and the gateway read ${pattern(descriptor.route.path)}`]
}

/** Where servers of this API read which thread a checkpoint is of, or which threads come before one. */
const CHECKPOINTS = ['checkpoint', 'before'] as const

/**
 * A checkpoint of another thread is not sent, even to a server that would read no thread there. Nor is it sent without its thread: it
 * would be another checkpoint then.
 */
function checkpointFaults(served: readonly Reached[], written: Written, descriptor: RouteDescriptor | null): readonly string[] {
  if (descriptor === null || descriptor.route.body.kind === 'none') return []
  return [...served.map(({ sent }) => sent), ...served.map(() => written)].flatMap(({ body }) => {
    const value = read(body)
    return CHECKPOINTS.filter((key) => descriptor.route.body.keys.includes(key))
      .flatMap((key) => [memberOf(value, key), memberOf(memberOf(value, key), 'configurable')])
      .map((place) => memberOf(place, 'thread_id'))
      .filter((id) => id !== undefined && id !== descriptor.ids.threadId)
      .map((id) => `a checkpoint of ${JSON.stringify(id)} was sent for ${descriptor.ids.threadId}`)
  })
}

function read(body: Uint8Array | null): unknown {
  try {
    return JSON.parse(String(Buffer.from(body ?? [])))
  } catch {
    return undefined
  }
}

function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[key] : undefined
}

const READING: ReadonlySet<string> = new Set(['GET', 'DELETE'])
const LISTING = /\/(?:search|count|history|versions|checkpoint)$/

/** What was written must not reach another user's thread when it is carried out, nor when the owner uses the thread again. */
async function laterFaults(
  server: LangGraphServer,
  served: readonly Reached[],
  { descriptor }: Outcome,
): Promise<readonly string[]> {
  const last = served.at(-1)
  if (last === undefined || READING.has(last.sent.method) || LISTING.test(last.sent.target)) return []
  let told = await server.carryOut()
  const threadId = descriptor?.route.copiesThread === true ? idIn(last.text) : descriptor?.ids.threadId
  if (threadId !== undefined && !isOthers(threadId)) {
    const json = [['content-type', 'application/json']] as const
    const run = Buffer.from(JSON.stringify({ assistant_id: ASSISTANT, multitask_strategy: 'enqueue' }))
    for (const [method, rest, body] of [
      ['GET', '/state?subgraphs=true', null],
      ['POST', '/runs', run],
    ] as const) {
      const answered = await server.answer({ method, target: `/threads/${threadId}${rest}`, headers: json, body })
      told += answered?.text ?? ''
    }
    told += await server.carryOut('unusual')
  }
  return [
    ...server.accesses().map((access) => `later: ${access}`),
    ...SECRETS.filter((word) => told.includes(word)).map((word) => `later, the owner was told ${word}`),
  ]
}

function idIn(text: string): string | undefined {
  const { thread_id: id } = JSON.parse(text) as { readonly thread_id?: string }
  return id
}

const THEIRS = FOREIGN.flatMap((id) => [id, runOf(id)])

function toldFaults(told: string, { target, headers, body }: LangGraphCase): readonly string[] {
  const asked = plain(`${target} ${JSON.stringify(headers)} ${body ?? ''}`)
  return [
    ...SECRETS.filter((word) => told.includes(word)).map((word) => `the caller was told ${word}`),
    ...THEIRS.filter((id) => told.includes(id) && !asked.includes(id)).map((id) => `the caller was told of ${id}`),
  ]
}

/** An error may repeat an id that the caller has written, in whatever spelling. */
function plain(text: string): string {
  return text
    .replace(/(?:\\u00|%)([0-9a-f]{2})/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .toLowerCase()
}
