/** What the real runtime does with a run that goes on, and with the headers of a caller, in either version and transport. */
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { listen, readBody, stop } from '../../examples/http.ts'
import { runInput } from '../../testing/support/client.ts'
import { connecting, envelope, RUNTIMES, send, start, type AnyRuntime, type Asked, type Mode } from './runtimes.ts'

const MODES: readonly Mode[] = ['multi-route', 'single-route']

function running(mode: Mode, agentId: string, body: object): Asked {
  return mode === 'multi-route' ? { path: `/agent/${agentId}/run`, body } : { body: envelope('agent/run', body, { agentId }) }
}

function stopping(mode: Mode, threadId: string): Asked {
  if (mode === 'single-route') return { body: envelope('agent/stop', undefined, { threadId }) }
  return { method: 'POST', path: `/agent/default/stop/${threadId}` }
}

/** Asks for a run and waits until it has begun: the head of the answer comes with its first event. */
function begin({ url, basePath }: AnyRuntime, { path = '', body }: Asked): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(`${url}${basePath}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

for (const name of RUNTIMES) {
  for (const mode of MODES) {
    void test(`${name}, ${mode}: a run goes on until it is stopped, and is one at a time`, async (t) => {
      t.capture(console, 'error')
      const runtime = await start(t, name, mode)
      const thread = crypto.randomUUID()
      const endless = await begin(runtime, running(mode, 'default', runInput(thread, 'endless')))
      const other = await send(runtime, running(mode, 'default', runInput(crypto.randomUUID())))
      t.match(other.text, /RUN_FINISHED/, 'other threads do not wait')
      const busy = await send(runtime, running(mode, 'default', runInput(thread, 'too soon')))
      t.same([busy.status, busy.text], [200, ''], 'a second run of the thread is an empty stream')
      const stopped = await send(runtime, stopping(mode, thread))
      t.match(stopped.json, { stopped: true, interrupt: { type: 'RUN_ERROR', code: 'STOPPED' } })
      t.match(await endless.text(), /RUN_STARTED[^]*RUN_FINISHED/, 'its stream ends')
      t.match((await send(runtime, stopping(mode, thread))).json, { stopped: false }, 'and there is nothing more to stop')
      t.match((await send(runtime, connecting(mode, thread))).text, /RUN_STARTED[^]*RUN_FINISHED/, 'a connect replays it')
    })

    void test(`${name}, ${mode}: a caller who leaves does not stop a run`, async (t) => {
      const runtime = await start(t, name, mode)
      const thread = crypto.randomUUID()
      const endless = await begin(runtime, running(mode, 'default', runInput(thread, 'endless')))
      await endless.body?.cancel()
      // The runtime has seen the connection end before it answers a request that came long after.
      await pause(100)
      t.match((await send(runtime, stopping(mode, thread))).json, { stopped: true })
    })

    void test(`${name}, ${mode}: which headers and keys of a caller reach an agent`, async (t) => {
      const agent = await startRecorder()
      t.teardown(() => agent.close())
      const agentHeaders = { authorization: 'Bearer server', 'x-server': 'server' }
      const runtime = await start(t, name, mode, { agentUrl: agent.url, agentHeaders })
      const input = runInput(crypto.randomUUID(), 'hi', { parentRunId: 'p', thread_id: 'other', lastSeenEventId: 'e' })
      const headers = {
        authorization: 'Bearer caller',
        cookie: 'session=caller',
        'x-server': 'caller',
        'x-custom': 'caller',
        'x-user-id': 'caller',
        'x-forwarded-for': '192.0.2.1',
      }
      const reply = await send(runtime, { ...running(mode, 'remote', input), headers })
      t.match(reply.text, /RUN_FINISHED/)
      const sent = agent.last()
      const kept = Object.keys(headers).map((header) => sent.headers[header])
      if (name.startsWith('1.75')) {
        t.same(kept, ['Bearer server', undefined, 'server', 'caller', 'caller', undefined], 'the server’s own headers win')
      } else t.same(kept, ['Bearer caller', undefined, 'caller', 'caller', 'caller', '192.0.2.1'], 'the caller’s headers win')
      t.same(
        Object.keys(sent.body).sort(),
        ['context', 'forwardedProps', 'messages', 'runId', 'state', 'threadId', 'tools'],
        'keys that AG-UI does not know do not, and neither does parentRunId',
      )
    })
  }
}

interface Recorder {
  readonly url: string
  /** The last run that it was asked for. */
  last(): { readonly headers: NodeJS.Dict<string | string[]>; readonly body: Readonly<Record<string, unknown>> }
  close(): Promise<void>
}

/** An agent that keeps what it was told, and ends each run at once. */
async function startRecorder(): Promise<Recorder> {
  let last: ReturnType<Recorder['last']> | undefined
  const server = createServer((request, response) => {
    void readBody(request, 1_000_000).then((text) => {
      const body = JSON.parse(text) as { threadId: string; runId: string }
      last = { headers: request.headers, body: { ...body } }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const type of ['RUN_STARTED', 'RUN_FINISHED']) {
        const { threadId, runId } = body
        response.write(`data: ${JSON.stringify({ type, threadId, runId })}\n\n`)
      }
      response.end()
    })
  })
  const { origin } = await listen(server, 0, '127.0.0.1')
  return {
    url: `${origin}/`,
    last: () => {
      if (last === undefined) throw new Error('the agent was not asked')
      return last
    },
    close: () => stop(server),
  }
}
