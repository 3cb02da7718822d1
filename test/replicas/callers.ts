/** What people do on one of several gateways, and the upstream behind all of them. */
import type { Test } from 'tap'
import { call, runInput, type Reply } from '../../testing/support/client.ts'
import { head, openRaw, type RawConnection } from '../../testing/support/raw.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'

/** What a caller sees of a stream that lost what it rests on. */
export const ENDED = /"type":"RUN_ERROR"/

/** More than the second that is promised, for machines on which everything is late. */
const GENEROUS_MS = 3000

/** The upstream: runs end at once, a stream that is connected to goes on, and everything else is empty. */
export const ANSWERS: Answering = (request, response) => {
  if (request.target.endsWith('/run')) return events({ type: 'RUN_STARTED' }, { type: 'RUN_FINISHED' })(request, response)
  if (!request.target.endsWith('/connect')) return json({ messages: [], threads: [] })(request, response)
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')
}

/** A gateway, as people use it. The thread is t1 unless another is named. */
export interface Callers {
  readonly base: string
  /** A run: the thread is the caller's, if it was nobody's. */
  readonly run: (token: string, threadId?: string) => Promise<Reply>
  /** The status of a request that reads the thread. */
  readonly reads: (token: string, threadId?: string) => Promise<number>
  /** Asks for a stream that does not end by itself, and waits until it has begun or was refused. */
  readonly connect: (token: string, threadId?: string) => Promise<RawConnection>
}

/** Of the gateway at a URL. */
export function callersOn(t: Test, url: string): Callers {
  const base = `${url}/api/copilotkit`
  return {
    base,
    run: (token, threadId = 't1') => call(`${base}/agent/default/run`, { token, body: runInput(threadId) }),
    reads: async (token, threadId = 't1') => (await call(`${base}/threads/${threadId}/messages`, { token })).status,
    async connect(token, threadId = 't1') {
      const stream = await openRaw(url)
      t.teardown(() => stream.destroy())
      const body = JSON.stringify(runInput(threadId))
      const lines = [`Authorization: Bearer ${token}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
      stream.write(head('POST /api/copilotkit/agent/default/connect HTTP/1.1', 'Host: a', ...lines) + body)
      await stream.until(/RUN_STARTED|"error"/)
      return stream
    },
  }
}

/**
 * Makes a change, and waits until it is in force.
 * @param change with which the clock starts
 * @param effects what becomes so, by name; how long each took goes into the report
 */
export async function within(
  t: Test,
  change: () => Promise<unknown>,
  effects: Readonly<Record<string, () => Promise<unknown>>>,
): Promise<void> {
  const start = performance.now()
  const changed = change().then(() => performance.now() - start)
  const took = async ([name, effect]: readonly [string, () => Promise<unknown>]): Promise<void> => {
    await effect()
    const after = performance.now() - start
    const alone = await changed
    t.comment(`${name}: ${Math.round(after)} ms after the change began, which itself took ${Math.round(alone)} ms`)
    t.ok(after - alone < GENEROUS_MS, `${name} within a second or so`)
  }
  await Promise.all(Object.entries(effects).map(took))
}
