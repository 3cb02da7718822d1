/** Carries out an authorized request: sends it upstream, or answers it from the ownership table. */
import { isRefusal, type Refusal } from '../../core/reasons.ts'
import type { RouteId } from '../../core/route/routes.ts'
import { isBridged, type RuntimeFacts, type Transport } from '../../core/route/transport.ts'
import type { Grants } from '../admin/grants.ts'
import { AnswerMemory } from '../lists/answer-memory.ts'
import type { Rewriter } from '../lists/rewriter.ts'
import type { Rewritten } from '../lists/rewriting.ts'
import type { HeaderLines } from '../../core/wire/headers.ts'
import { ArrivingBody } from '../upstream/answer-body.ts'
import type { Delivered, Forwarder } from '../upstream/forward.ts'
import type { UpstreamAnswer } from '../upstream/upstream.ts'
import type { Answer } from './answer.ts'
import type { SharedBudget } from './request-body.ts'
import type { Authorized, Forward } from './stages.ts'

export interface ForwardingParts {
  readonly forwarder: Forwarder
  readonly rewriter: Rewriter
  readonly grants: Grants
  /** Checks the run that a path names. Null for a run of the thread. */
  readonly checkRun: (request: Authorized) => Promise<Refusal | null>
  readonly answerMemory: SharedBudget
  readonly onBridged: (client: Transport) => void
}

/** Routes whose answers are not passed on as they come, for some requests. */
const REWRITTEN: ReadonlySet<RouteId> = new Set(['threads/list', 'threads/update', 'threads/archive', 'info'])

export function makeForward(parts: ForwardingParts): Forward {
  const { forwarder, rewriter, grants } = parts

  /** A rewritten answer counts as memory until the caller has it. */
  const rewrite = async (request: Authorized): Promise<Rewritten> => {
    const { caller, exchange } = request
    const memory = new AnswerMemory(parts.answerMemory.of(caller.key))
    let held = 0
    try {
      const rewritten = await rewriter.rewrite(request, memory)
      if (rewritten.outcome === 'rewritten' && !exchange.response.closed) {
        held = Buffer.byteLength(rewritten.body)
        exchange.response.once('close', () => memory.release())
      }
      return rewritten
    } finally {
      memory.wrote(held)
    }
  }

  const answerGrants = async (request: Authorized, onPermitted: () => void): ReturnType<Forward> => {
    const answer = await grants(request)
    if (isRefusal(answer)) return answer
    onPermitted()
    return answer.body === '' ? answer : forwarder.deliverWritten(answer, request)
  }

  const deliver = (rewritten: Rewritten, request: Authorized): Delivered | Promise<Delivered> => {
    switch (rewritten.outcome) {
      case 'rewritten':
        return forwarder.deliverWritten(rewritten, request)
      case 'passthrough':
        return forwarder.deliver(rewritten.answer, request)
      case 'failed':
        return forwarder.failed(rewritten, request.exchange)
      case 'refused':
        return forwarder.unusable(rewritten, request.exchange)
    }
  }

  const forwardRewritten = async (request: Authorized, onPermitted: () => void): Promise<Delivered | Refusal> => {
    const rewritten = await rewrite(request)
    // An invalid cursor or limit is a refusal like any other; everything else about a list was permitted.
    if (rewritten.outcome === 'refused' && rewritten.code !== 'upstream-unusable') return rewritten
    if (rewritten.outcome === 'failed' && rewritten.isOutdated === true) return 'outdated'
    if (isBridged(request.upstream, request.exchange.record.client)) parts.onBridged(request.exchange.record.client)
    onPermitted()
    return deliver(rewritten, request)
  }

  const passRun = async (request: Authorized, onPermitted: () => void): ReturnType<Forward> => {
    const refusal = await parts.checkRun(request)
    return refusal ?? forwarder.pass(request, onPermitted)
  }

  return (request, onPermitted) => {
    const { permit, upstream, exchange } = request
    const { client } = exchange.record
    const { route } = permit.descriptor
    if (route.own === true) return answerGrants(request, onPermitted)
    if ((route.api !== undefined || REWRITTEN.has(route.id)) && rewriter.rewrites(request))
      return forwardRewritten(request, onPermitted)
    if (isBridged(upstream, client)) parts.onBridged(client)
    if (permit.descriptor.ids.runId !== undefined) return passRun(request, onPermitted)
    if (!permit.answerEmpty) return forwarder.pass(request, onPermitted)
    onPermitted()
    const quiet = quietTime(exchange.head.lines)
    if (quiet === null || upstream.managed) return Promise.resolve(emptyThread(upstream))
    return Promise.resolve(forwarder.deliver(quietThread(quiet), request))
  }
}

/** The runtime's answer to a connect with a thread that it does not know (runtime-behaviour.md, "Routes"). */
function emptyThread({ managed }: RuntimeFacts): Answer {
  if (managed) return { status: 204, headers: { 'cache-control': 'no-store' }, body: '' }
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' },
    body: '',
  }
}

/** Seconds for which an empty thread stays open. `threadwarden doctor` asks for it, to see what a proxy does to a quiet stream. */
export const QUIET_HEADER = 'x-threadwarden-quiet'
export const LONGEST_QUIET_SECONDS = 300
/** SSE comments, which clients skip. */
export const QUIET_BEGINS = ': quiet'
export const QUIET_ENDS = ': over'

function quietTime(lines: HeaderLines): number | null {
  const [value = ''] = lines.get(QUIET_HEADER) ?? []
  const seconds = /^\d{1,3}$/.test(value) ? Number(value) : 0
  return seconds === 0 || seconds > LONGEST_QUIET_SECONDS ? null : seconds * 1000
}

/** Delivered like an answer of the upstream, so keep-alive comments, revocation and shutdown are the same. */
function quietThread(milliseconds: number): UpstreamAnswer {
  const timer = setTimeout(() => {
    body.push(Buffer.from(`${QUIET_ENDS}\n\n`))
    body.finish()
  }, milliseconds)
  const body = new ArrivingBody({ pause() {}, resume() {}, abort: () => clearTimeout(timer) })
  body.push(Buffer.from(`${QUIET_BEGINS}\n\n`))
  return { outcome: 'answered', status: 200, headers: { 'content-type': 'text/event-stream' }, body }
}
