/** Checks who else can reach the upstream: by its debug stream, from a page in a browser, past the gateway, or by another upstream. */
import { randomUUID } from 'node:crypto'
import type { UpstreamApi } from '../../core/route/all-routes.ts'
import { isLoopbackHost } from '../../core/wire/addresses.ts'
import { openPastLoopback } from '../../http/upstream/exposure.ts'
import { askInfo, askUpstream, isStream, routeOf, objectIn } from './requests.ts'
import { notChecked, ok, problem, unknown, warning, type Result } from './finding.ts'
import { settingOf, UNSHOWN, type Check, type Results, type Subject } from './subject.ts'
import { isObject, type Json } from '../../core/json/read.ts'
import { hasOperation, type RuntimeFacts } from '../../core/route/transport.ts'
import { upstreamRequest } from '../../http/upstream/upstream.ts'
import { asCaller } from './threads.ts'
import { askSearch } from './langgraph.ts'
import { listedPages } from './thread-list.ts'

export const EXPOSURE_CHECKS: readonly Check[] = [
  { name: 'upstream.debug', run: debugStream },
  { name: 'upstream.cors', run: cors },
  { name: 'upstream.exposure', run: exposure },
]

/** A LangGraph server has no debug stream of its own. */
export const SERVER_EXPOSURE_CHECKS: readonly Check[] = EXPOSURE_CHECKS.filter(({ name }) => name !== 'upstream.debug')

const STRANGER = 'https://threadwarden-doctor.invalid'

async function debugStream(subject: Subject, signal: AbortSignal): Promise<Results> {
  const target = `${subject.mount.basePath}/cpk-debug-events`
  const { status, headers } = await askUpstream(subject, { method: 'GET', target, headers: subject.headers }, signal)
  if (status === 200 && isStream(headers)) {
    return problem(
      'the debug stream of the runtime is open: a caller who reaches it reads the messages of all threads',
      'unset `debug` in the runtime and set NODE_ENV=production for it',
    )
  }
  if (status === 404 || status === 405) return ok('the debug stream of the runtime is closed')
  return unknown(`it is not known whether the debug stream of the runtime is open: it answered ${status}`)
}

const CORS_REMEDIES: Readonly<Record<UpstreamApi, string>> = {
  runtime: 'switch off CORS in the runtime (`cors: false`, if its version has it)',
  agent: 'switch off CORS in the agent',
  langgraph: 'list no origins under "http": { "cors" } in langgraph.json',
}

async function cors(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { facts } = subject.known
  if (facts === null) return notChecked(UNSHOWN)
  const { headers } = await askInfo(subject, facts, signal, { ...subject.headers, origin: STRANGER })
  const allowed = headers['access-control-allow-origin']
  if (allowed !== '*' && allowed !== STRANGER) return ok('the upstream allows no other origins')
  const how = allowed === '*' ? 'with "*"' : 'by repeating the origin of the request'
  const credentials = headers['access-control-allow-credentials'] === 'true' ? ', credentials included' : ''
  return warning(
    `the upstream allows pages of every origin ${how}${credentials}: browsers that reach it can bypass the gateway`,
    `${CORS_REMEDIES[subject.mount.api]}, and block browsers from its port: the gateway answers them by cors.origins`,
  )
}

async function exposure(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { url, headers, api } = subject.mount
  const server = api === 'langgraph' ? 'server' : 'runtime'
  if (!subject.known.isReached) return notChecked('the upstream gives no answer')
  if (isLoopbackHost(new URL(url).hostname)) {
    const open = await openPastLoopback(url, subject.machine.addresses)
    if (open.length === 0) return ok('the upstream listens only on loopback, as far as this machine can tell')
    return problem(
      `the port of the upstream is also open on ${open.join(', ')}: callers who reach it bypass the gateway`,
      `let the ${server} listen only on 127.0.0.1`,
    )
  }
  const { facts } = subject.known
  if (facts === null) return notChecked(UNSHOWN)
  // A LangGraph server tells its version to every caller.
  const { status } = await (api === 'langgraph'
    ? askSearch(subject, { ids: [randomUUID()] }, {}, signal)
    : askInfo(subject, facts, signal, { 'accept-encoding': 'identity' }))
  if (status === 401 || status === 403) {
    return ok('the upstream is on another machine, and requires the secret that the gateway sends')
  }
  const sends =
    Object.keys(headers).length > 0 ? `, and does not check ${settingOf(subject, 'headers')}` : ', and requires no secret'
  return warning(
    `the upstream is on another machine${sends}: callers who reach it bypass the gateway`,
    `let the network admit only the gateway, and let the ${server} require a secret from ${settingOf(subject, 'headers')}`,
  )
}

export const SEPARATION_CHECK: Check = { name: 'threads.apart', run: checkSeparation }

/** On shared storage, an owner could use another user's thread at the other upstream. */
async function checkSeparation(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { mount, known } = subject
  known.threadIds = await listedIds(subject, signal)
  const others = subject.before.filter((other) => other.mount.scope !== mount.scope)
  if (others.length === 0) return []
  return others.map((other) => compared(subject, other))
}

function compared(one: Subject, other: Subject): Result {
  const name = other.mount.place.join('.')
  const remedy = `write scope: ${other.mount.key === '' ? 'upstream' : other.mount.key} there, so that both share the owners of threads`
  const [here, there] = [one.known.threadIds, other.known.threadIds]
  const both = here === null || there === null ? [] : [...here].filter((id) => there.has(id))
  if (both.length > 0) {
    return problem(
      `it lists threads that ${name} also lists (${both.length}): the owner of such a thread here can use the thread of another user there`,
      remedy,
    )
  }
  const [agent, runtime] = one.mount.agentId === null ? [other, one] : [one, other]
  if (agent.mount.agentId !== null && runtime.known.agents.includes(agent.mount.agentId)) {
    return warning(
      `${runtime.mount.place.join('.')} also has an agent called ${agent.mount.agentId}: if it is the same agent, its threads can be reached through both`,
      remedy,
    )
  }
  if (here === null || there === null || here.size === 0 || there.size === 0)
    return notChecked(`it is not known whether it shares threads with ${name}: the doctor does not see threads of both`)
  return ok(`it lists no thread that ${name} lists`)
}

/** Null if the upstream gives no list. */
async function listedIds(subject: Subject, signal: AbortSignal): Promise<ReadonlySet<string> | null> {
  const { mount, known } = subject
  const list = routeOf('GET', 'threads')
  if (mount.api === 'langgraph') return known.facts === null ? null : searchedIds(subject, known.facts, signal)
  if (known.facts === null || mount.agentId !== null || !hasOperation(known.facts, list.route)) return null
  const asked = upstreamRequest(known.facts, mount.basePath, { descriptor: list, headers: asCaller(subject) })
  const answer = await askUpstream(subject, asked, signal).catch(() => null)
  const threads = answer?.status === 200 ? objectIn(answer)?.['threads'] : undefined
  if (!Array.isArray(threads)) return null
  const ids = threads.map((thread: Json) => (isObject(thread) ? thread['id'] : undefined))
  return new Set(ids.filter((id) => typeof id === 'string'))
}

async function searchedIds(subject: Subject, facts: RuntimeFacts, signal: AbortSignal): Promise<ReadonlySet<string> | null> {
  try {
    for await (const ids of listedPages(subject, facts, asCaller(subject), signal)) return new Set(ids)
    return new Set()
  } catch {
    return null
  }
}
