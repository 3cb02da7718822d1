/** Checks that upstreams are separate: on shared storage, an owner could use another user's thread at the other upstream. */
import { isObject, type Json } from '../../core/json/read.ts'
import { hasOperation } from '../../core/route/transport.ts'
import { collect } from '../../http/upstream/answer-body.ts'
import { upstreamRequest, jsonOf } from '../../http/upstream/upstream.ts'
import { routeOf } from './requests.ts'
import { notChecked, ok, problem, warning, type Result } from './finding.ts'
import type { Check, Results, Subject } from './subject.ts'
import { asCaller } from './threads.ts'

const MAX_LIST_BYTES = 4 * 1024 * 1024

export const SEPARATION_CHECK: Check = { name: 'threads.apart', run: checkSeparation }

async function checkSeparation(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { mount, known } = subject
  known.threadIds = await listedIds(subject, signal)
  const others = subject.before.filter((other) => other.mount.scope !== mount.scope)
  if (others.length === 0) return []
  return others.map((other) => compared(subject, other))
}

function compared(one: Subject, other: Subject): Result {
  const name = other.mount.place.join('.')
  const remedy = `write scope: ${other.mount.key === '' ? 'upstream' : other.mount.key} there, so that both have the same owners`
  const [here, there] = [one.known.threadIds, other.known.threadIds]
  const both = here === null || there === null ? [] : [...here].filter((id) => there.has(id))
  if (both.length > 0) {
    return problem(
      `it lists threads that ${name} lists too (${both.length}): the owner of one of them here can use another user's thread there`,
      remedy,
    )
  }
  const [agent, runtime] = one.mount.agentId === null ? [other, one] : [one, other]
  if (agent.mount.agentId !== null && runtime.known.agents.includes(agent.mount.agentId)) {
    return warning(
      `${runtime.mount.place.join('.')} has an agent called ${agent.mount.agentId}, too: if it is this one, its threads can be used on both ways`,
      remedy,
    )
  }
  if (here === null || there === null || here.size === 0 || there.size === 0)
    return notChecked(`whether it is separate from ${name} is not known: the doctor sees no threads of both`)
  return ok(`it lists no thread that ${name} lists`)
}

/** Null if the upstream gives no list. */
async function listedIds(subject: Subject, signal: AbortSignal): Promise<ReadonlySet<string> | null> {
  const { mount, known, upstream } = subject
  const list = routeOf('GET', 'threads')
  if (known.facts === null || mount.agentId !== null || !hasOperation(known.facts, list.route)) return null
  const headers = asCaller(subject)
  const answer = await upstream.send(upstreamRequest(known.facts, mount.basePath, { descriptor: list, headers }), signal)
  if (answer.outcome === 'failed') return null
  const bytes = await collect(answer.body, MAX_LIST_BYTES)
  const value = answer.status === 200 && typeof bytes !== 'string' ? jsonOf(bytes) : undefined
  const threads = isObject(value) ? value['threads'] : undefined
  if (!Array.isArray(threads)) return null
  const ids = threads.map((thread: Json) => (isObject(thread) ? thread['id'] : undefined))
  return new Set(ids.filter((id) => typeof id === 'string'))
}
