/** Checks that event streams pass: by the head of a stream of the upstream, and by one run through the gateway. */
import { randomUUID } from 'node:crypto'
import { request, type Dispatcher } from 'undici'
import { headersWith } from '../../auth/request-credentials.ts'
import { codeOf, isStream, type HttpAnswer, askUpstream, routeOf } from './requests.ts'
import { notChecked, ok, problem, seconds, unknown, warning, type Result } from './finding.ts'
import { absent, codeIn, reachable } from './gateway.ts'
import { type Check, type Results, type Subject, UNSHOWN } from './subject.ts'
import type { UpstreamAnswerHeaders } from '../../core/wire/headers.ts'
import { upstreamRequest } from '../../http/upstream/upstream.ts'

const LONGEST_RUN_MS = 60_000

/** A shorter run shows nothing about proxies on the way. */
const LONG_ENOUGH_MS = 500

const ONE_SECOND_MS = 1000

/** Events that arrived within this time of each other arrived in one piece. */
const ONE_PIECE_MS = 50

const MAX_BYTES = 16 * 1024 * 1024

export const RUN_CHECK: Check = { name: 'gateway.run', atLeast: LONGEST_RUN_MS, run: runOnce }

interface Course {
  readonly first: number
  readonly last: number
  readonly events: number
  /** The time without a byte before a break. */
  readonly sinceByte: number
  readonly error: boolean
  readonly brokeOff: boolean
}

/** The run creates a thread, which then belongs to the user of the token. */
async function runOnce(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { config, wishes } = subject
  if (wishes.run === null) {
    return notChecked(
      'only a run shows whether events arrive one by one',
      'pass --run AGENT: it runs the agent once and leaves a new thread',
    )
  }
  if (wishes.token === null && config.authentication.mode === 'required') {
    return notChecked('a run needs a token of a caller', 'pass one with --token-file')
  }
  const { base, result } = reachable(subject)
  if (base === null) return result
  const { agentId, message } = wishes.run
  const { mount } = subject
  if (mount.api === 'langgraph') return notChecked('--run is for runtimes and agents', 'run a graph with its client')
  if (mount.agentId !== null && mount.agentId !== agentId) {
    const there = Object.keys(config.agents).join(', ')
    return notChecked('the configuration has no runtime, and no agent with this name', `pass --run with one of: ${there}`)
  }
  const sent = performance.now()
  const to = mount.agentId === null ? `${base}/agent/${encodeURIComponent(agentId)}/run` : base
  const threadId = randomUUID()
  const input = runInput(threadId, [{ id: randomUUID(), role: 'user', content: message }])
  const answer = await openStream(to, input, subject, signal)
  if (answer instanceof Error) return absent(base, codeOf(answer), wishes.url !== null)
  const { statusCode: status, headers } = answer
  if (status !== 200 || !isStream(headers)) return refused({ status, headers, text: await answer.body.text() })
  if (isCompressed(headers)) {
    answer.body.on('error', () => {}).destroy()
    return STREAM_COMPRESSED
  }
  const course = await follow(answer.body as AsyncIterable<Buffer>, sent)
  const findings: Result[] = [judge(course)]
  // nginx obeys the header and removes it, so behind a proxy its absence means nothing.
  if (wishes.url === null && headers['x-accel-buffering'] !== 'no') {
    findings.push(
      warning('the answer lacks X-Accel-Buffering: no, which this gateway sets', 'check that this gateway listens there'),
    )
  }
  const left = `the run left the thread ${threadId} in the upstream and in the ownership table: its owner is the user of the token`
  return [...findings, { ...ok(left), check: 'gateway.thread' }]
}

export const STREAM_COMPRESSED = problem(
  'a proxy compresses the stream of events, which delays events',
  'switch off compression for text/event-stream',
)

export function isCompressed(headers: UpstreamAnswerHeaders): boolean {
  return headers['content-encoding'] !== undefined && headers['content-encoding'] !== 'identity'
}

/** Asks for compression as browsers do, to detect a proxy that would compress the stream. */
export function openStream(
  url: string,
  input: object,
  { config, wishes: { token }, listener }: Subject,
  signal: AbortSignal,
  more: Readonly<Record<string, string>> = {},
): Promise<Dispatcher.ResponseData | Error> {
  return request(url, {
    ...(listener === undefined ? {} : { dispatcher: listener }),
    method: 'POST',
    headers: {
      accept: 'text/event-stream',
      'accept-encoding': 'gzip, br',
      'content-type': 'application/json',
      ...(token === null ? {} : headersWith(token, config)),
      ...more,
    },
    body: JSON.stringify(input),
    headersTimeout: 0,
    bodyTimeout: 0,
    signal,
  }).catch((error: unknown) => (error instanceof Error ? error : new Error('failed')))
}

function refused(heard: HttpAnswer): Result {
  return problem(
    `the run was answered with ${heard.status}${codeIn(heard)} and no stream of events`,
    'check the name of the agent, and whether this caller may run it: the log line of the request has the reason',
  )
}

async function follow(body: AsyncIterable<Buffer>, sent: number): Promise<Course> {
  let [first, last, events, bytes, heard] = [0, 0, 0, 0, 0]
  const now = (): number => performance.now() - sent
  let text = ''
  let error = false
  let isOver = false
  let brokeOff = false
  try {
    for await (const chunk of body) {
      bytes += chunk.length
      heard = now()
      if (bytes > MAX_BYTES) {
        // The rest of the run is not followed, which is no break.
        isOver = true
        break
      }
      const lines = (text + chunk.toString('latin1')).split('\n')
      text = lines.pop() ?? ''
      // SSE comments keep a stream alive and are not events.
      const came = lines.filter((line) => line.startsWith('data:'))
      error ||= came.some((line) => /"type": *"RUN_ERROR"/.test(line))
      isOver ||= came.some((line) => /"type": *"RUN_(?:FINISHED|ERROR)"/.test(line))
      if (came.length === 0) continue
      if (events === 0) first = heard
      last = heard
      events += came.length
    }
  } catch {
    brokeOff = true
  }
  // Caddy, for example, ends a stream that it gives up like a whole one.
  brokeOff ||= events > 0 && !isOver
  const end = now()
  return { first, last: brokeOff ? end : last, events, sinceByte: end - heard, error, brokeOff }
}

function judge({ first, last, events, sinceByte, error, brokeOff }: Course): Result {
  if (brokeOff) {
    const quiet = sinceByte < ONE_SECOND_MS ? '' : `, when it had been quiet for ${seconds(sinceByte)}`
    return problem(
      `the stream broke off after ${seconds(last)} and ${events} ${events === 1 ? 'event' : 'events'}${quiet}`,
      'increase the time-outs of proxies above streams.keepAlive (nginx: proxy_read_timeout, HAProxy: timeout server, Caddy: read_timeout), and look in the log of the gateway',
    )
  }
  if (error) return warning(`the run ended with an error after ${seconds(last)}`, 'look in the log of the runtime')
  if (events === 0)
    return problem('the stream ended without an event', 'look in the log of the runtime, and try the agent without the gateway')
  if (last < LONG_ENOUGH_MS) return unknown(`the run ended after ${seconds(last)}: too fast to see whether events are delayed`)
  if (events > 1 && last - first < ONE_PIECE_MS) {
    return problem(
      `events are delayed on the way: all ${events} arrived together after ${seconds(last)}`,
      'switch off buffering and compression in every proxy (nginx: proxy_buffering off, gzip off, or let X-Accel-Buffering pass). If --url names a proxy, run without --url to find the side. An agent that sends everything at its end looks the same',
    )
  }
  return ok(`events arrive one by one: the first after ${seconds(first)}, the last of ${events} after ${seconds(last)}`)
}

export const STREAMS_CHECK: Check = { name: 'upstream.streams', run: look }

async function look(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { facts, agents } = subject.known
  if (facts === null) return notChecked(UNSHOWN)
  if (facts.managed) return notChecked('events of the managed platform do not pass through the gateway')
  const agentId = agents.find((agent) => /^[A-Za-z0-9_-]+$/.test(agent))
  if (agentId === undefined) return notChecked('the upstream has no agent')
  const body = Buffer.from(JSON.stringify(runInput(randomUUID(), [])))
  const headers = { ...subject.headers, accept: 'text/event-stream', 'content-type': 'application/json' }
  const descriptor = routeOf('POST', 'agent', agentId, 'connect')
  const asked = upstreamRequest(facts, subject.mount.basePath, { descriptor, headers, body })
  const answer = await askUpstream(subject, asked, signal)
  if (answer.status !== 200 || !isStream(answer.headers)) {
    return notChecked(`the upstream answered a connect to a random thread with ${answer.status} and no stream`)
  }
  const signs = signsOfBuffering(answer.headers)
  if (signs.length === 0) return ok('no proxy changes the streams of the upstream')
  return warning(
    `a stream of the upstream ${signs.join(', ')}: a proxy before it may delay events`,
    'switch off compression, caching and buffering between the gateway and the runtime; --run shows whether events arrive one by one',
  )
}

/** Headers that a stream straight from a runtime does not have. */
function signsOfBuffering(headers: UpstreamAnswerHeaders): readonly string[] {
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

export function runInput(threadId: string, messages: readonly object[]): object {
  return { threadId, runId: randomUUID(), state: {}, messages, tools: [], context: [], forwardedProps: {} }
}
