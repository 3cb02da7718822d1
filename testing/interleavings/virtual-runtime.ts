/**
 * A runtime whose every step is a choice of the schedule: when there is a connection to it, when a request is executed, when it is answered, and when a run
 * writes to its thread, which may be after everything else.
 */
import { ArrivingBody } from '../../src/http/upstream/answer-body.ts'
import { refuse } from '../../src/core/reasons.ts'
import type { Upstream, UpstreamAnswer, UpstreamFailure, UpstreamRequest } from '../../src/http/upstream/upstream.ts'
import type { Scheduler } from './scheduler.ts'

/** What the runtime holds of the one thread there is: who wrote, in their order. */
export interface RuntimeState {
  content: string[]
}

/** Told what a caller makes the runtime do, at that moment. */
export interface RuntimeEvents {
  /** The gateway has sent a request. @param letter that of the configuration that it was made by */
  sent(user: string, what: string, letter: string): void
  wrote(user: string): void
}

/** What stands before the names of those who wrote, in whatever the runtime answers. */
export const CONTENT = 'CONTENT:'

const NOTHING: UpstreamFailure = {
  outcome: 'failed',
  refusal: refuse('upstream-unreachable'),
  maybeSent: false,
  detail: 'nothing is asked',
}

/** Makes the runtime. Its users are named by the actors that ask, as `user what`. */
export function virtualRuntime(scheduler: Scheduler, state: RuntimeState, events: RuntimeEvents): Upstream {
  const answerTo = async (
    { method }: UpstreamRequest,
    resolve: (answer: UpstreamAnswer | UpstreamFailure) => void,
    asker: string,
  ): Promise<void> => {
    const [user = ''] = asker.split(' ')
    const what = method === 'DELETE' ? 'delete' : method === 'GET' ? 'read' : 'run'
    const text = await scheduler.park(
      `${what} executes`,
      () => {
        if (what === 'delete') state.content = []
        return `${CONTENT}${state.content.join(',')};`
      },
      () => state.content.join(','),
    )
    const body = new ArrivingBody({ pause() {}, resume() {}, abort() {} })
    const type = what === 'run' ? 'text/event-stream' : 'application/json'
    const answer = { outcome: 'answered', status: 200, headers: { 'content-type': type }, body } as const
    await scheduler.park(`${what} is answered`, () => {
      body.push(Buffer.from(what === 'run' ? `data: "${text}"\n\n` : JSON.stringify({ messages: text })))
      if (what !== 'run') body.finish()
      resolve(answer)
    })
    if (what !== 'run') return
    await scheduler.park('run writes and ends', () => {
      state.content.push(user)
      events.wrote(user)
      body.push(Buffer.from(`data: "${CONTENT}${state.content.join(',')};"\n\n`))
      body.finish()
    })
  }
  /** A connection may take its time, and nothing is sent where access has ended by then. */
  const sendTo = async (request: UpstreamRequest, resolve: (answer: UpstreamAnswer | UpstreamFailure) => void): Promise<void> => {
    const asker = scheduler.actor().name
    const isSent = await scheduler.park('connects', () => {
      if (request.mayBegin?.() === false) return false
      events.sent(asker.split(' ')[0] ?? '', request.method, request.headers['x-generation'] ?? '')
      return true
    })
    if (isSent) scheduler.start(`${asker} at the runtime`, 'runtime', () => answerTo(request, resolve, asker))
    else resolve(NOTHING)
  }
  return {
    send: (request) =>
      new Promise((resolve) => {
        // What the gateway asks on its own account is not the question here.
        if (request.headers['x-request-id'] === undefined || scheduler.isGone()) resolve(NOTHING)
        else void sendTo(request, resolve)
      }),
    retire: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
}
