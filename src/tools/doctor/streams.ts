/** Checks that event streams pass, as far as the response head shows. Only a run shows single events (live-run.ts). */
import { randomUUID } from 'node:crypto'
import type { UpstreamAnswerHeaders } from '../../core/wire/headers.ts'
import { upstreamRequest } from '../../http/upstream/upstream.ts'
import { askUpstream, isStream, routeOf } from './requests.ts'
import { notChecked, ok, warning } from './finding.ts'
import { UNSHOWN, type Check, type Results, type Subject } from './subject.ts'

export const STREAMS_CHECK: Check = { name: 'upstream.streams', run: look }

async function look(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { facts, agents } = subject.known
  if (facts === null) return notChecked(UNSHOWN)
  if (facts.managed) return notChecked('events of the managed platform come by another way than the gateway')
  const agentId = agents.find((agent) => /^[A-Za-z0-9_-]+$/.test(agent))
  if (agentId === undefined) return notChecked('the upstream names no agent')
  const body = Buffer.from(JSON.stringify(runInput([])))
  const headers = { ...subject.headers, accept: 'text/event-stream', 'content-type': 'application/json' }
  const descriptor = routeOf('POST', 'agent', agentId, 'connect')
  const asked = upstreamRequest(facts, subject.mount.basePath, { descriptor, headers, body })
  const answer = await askUpstream(subject, asked, signal)
  if (answer.status !== 200 || !isStream(answer.headers)) {
    return notChecked(`the upstream gave no stream for a connect to a random thread, but ${answer.status}`)
  }
  const signs = signsOfBuffering(answer.headers)
  if (signs.length === 0) return ok('streams come from the upstream as a runtime sends them')
  return warning(
    `a stream of the upstream ${signs.join(', ')}: something between may hold events back`,
    'take compression, caching and buffering away between gateway and runtime; --run tells whether events come one by one',
  )
}

/** Headers that a stream straight from a runtime does not have. */
export function signsOfBuffering(headers: UpstreamAnswerHeaders): readonly string[] {
  const text = (name: string): string => String(headers[name] ?? '').toLowerCase()
  const signs: string[] = []
  // A stream that ended before its head was written is sent with its length, 0.
  const over = text('content-length') === '0'
  if (text('content-length') !== '' && !over) signs.push('has a content-length')
  if (text('content-length') === '' && !text('transfer-encoding').includes('chunked')) signs.push('is not sent in chunks')
  if (text('content-encoding') !== '' && text('content-encoding') !== 'identity') signs.push('is compressed')
  if (!text('cache-control').includes('no-cache')) signs.push('may be cached')
  for (const name of ['via', 'x-cache', 'x-proxy-cache', 'x-varnish', 'cf-cache-status', 'age']) {
    if (text(name) !== '') signs.push(`comes through a proxy (${name})`)
  }
  return signs
}

export function runInput(messages: readonly object[]): object {
  return { threadId: randomUUID(), runId: randomUUID(), state: {}, messages, tools: [], context: [], forwardedProps: {} }
}
