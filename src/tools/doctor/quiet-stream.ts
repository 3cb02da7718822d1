/** Checks that proxies neither hold back nor cut a stream without events. The gateway itself keeps the stream open, no agent does. */
import { randomUUID } from 'node:crypto'
import type { Dispatcher } from 'undici'
import { LONGEST_QUIET_SECONDS, QUIET_BEGINS, QUIET_ENDS, QUIET_HEADER } from '../../http/pipeline/forwarding.ts'
import { notChecked, ok, problem, seconds, type Result } from './finding.ts'
import { absent, codeIn, reachable } from './gateway.ts'
import { isCompressed, openStream, runInput, STREAM_COMPRESSED } from './live-run.ts'
import { codeOf, isStream } from './requests.ts'
import type { Check, Results, Subject } from './subject.ts'

export const LONGEST_QUIET_MS = LONGEST_QUIET_SECONDS * 1000

export const QUIET_CHECK: Check = {
  name: 'gateway.quiet',
  atLeast: ({ wishes }) => wishes.quiet + 2 * wishes.timeout,
  run: staysOpen,
}

const HELD_BACK =
  'switch off buffering in every proxy (nginx: proxy_buffering off, and no proxy_ignore_headers X-Accel-Buffering)'
const CUT =
  'increase the time-outs of the proxy for a response (nginx: proxy_read_timeout, HAProxy: timeout server, Caddy: read_timeout of the transport and timeouts write of the server)'

async function staysOpen(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { config, mount, wishes } = subject
  if (wishes.url === null || wishes.quiet === 0) return []
  if (mount.api !== 'runtime') return notChecked('the gateway has no runtime, and agents have no connect')
  if (wishes.token === null && config.authentication.mode === 'required') {
    return notChecked('a quiet stream needs a token of a caller', 'pass one with --token-file')
  }
  const { base, result } = reachable(subject)
  if (base === null) return result
  const agentId = wishes.run?.agentId ?? subject.known.agents[0] ?? 'default'
  const to = `${base}/agent/${encodeURIComponent(agentId)}/connect`
  const early = new AbortController()
  const sent = performance.now()
  const waiting = setTimeout(() => early.abort(), wishes.timeout)
  const headers = { [QUIET_HEADER]: String(wishes.quiet / 1000) }
  const answer = await openStream(to, runInput(randomUUID(), []), subject, AbortSignal.any([signal, early.signal]), headers)
  try {
    if (early.signal.aborted) return heldBack(sent)
    if (answer instanceof Error) return absent(base, codeOf(answer), true)
    return await judge(answer, sent, wishes.quiet, early.signal, () => clearTimeout(waiting))
  } finally {
    clearTimeout(waiting)
  }
}

async function judge(
  { statusCode: status, headers, body }: Dispatcher.ResponseData,
  sent: number,
  quiet: number,
  early: AbortSignal,
  onBegun: () => void,
): Promise<Result> {
  if (status !== 200 || !isStream(headers)) {
    const heard = { status, headers, text: await body.text() }
    // The gateway's own refusals have a code.
    if (status >= 500 && codeIn(heard) === '') {
      return problem(`a proxy before the gateway answers a quiet stream with ${status}`, `${HELD_BACK}; ${CUT}`)
    }
    return notChecked(`a connect to a new thread was answered with ${status}${codeIn(heard)} and no stream`)
  }
  if (isCompressed(headers)) {
    body.on('error', () => {}).destroy()
    return STREAM_COMPRESSED
  }
  let text = ''
  let [last, silence] = [sent, 0]
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      const now = performance.now()
      silence = Math.max(silence, now - last)
      last = now
      text += chunk.toString('latin1')
      if (text.includes(QUIET_BEGINS)) onBegun()
    }
  } catch {
    if (early.aborted) return heldBack(sent)
    return cut(last)
  }
  const code = /"code":"([a-z-]{1,40})"/.exec(text)?.[1]
  if (code !== undefined) return notChecked(`the gateway ended the quiet stream (${code})`, 'run the doctor again')
  if (!text.includes(QUIET_BEGINS))
    return notChecked('the gateway answered a new thread with an empty stream that it did not keep open')
  if (!text.includes(QUIET_ENDS)) return cut(last)
  return ok(`a stream without events stays open for ${seconds(quiet)}, with at most ${seconds(silence)} of silence`)
}

function heldBack(sent: number): Result {
  return problem(
    `a proxy before the gateway holds back streams: nothing of one arrived within ${seconds(performance.now() - sent)}`,
    HELD_BACK,
  )
}

function cut(last: number): Result {
  return problem(`a proxy before the gateway cuts a stream after ${seconds(performance.now() - last)} of silence`, CUT)
}
