/**
 * What the gateway writes for one transport means nothing to a runtime of the other, route by route, on every runtime: so an
 * upstream that has changed its transport can refuse a request, and not take it for another one.
 */
import { test } from 'tap'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { ROUTES, type Route } from '../../src/core/route/routes.ts'
import { assumedFacts, hasOperation, TRANSPORTS } from '../../src/core/route/transport.ts'
import { upstreamRequest } from '../../src/http/upstream/upstream.ts'
import { runInput } from '../../testing/support/client.ts'
import { hush, RUNTIMES, send, start, type Asked } from './runtimes.ts'

/** Every key that the gateway lets through on the route, with what a caller might like to see obeyed. */
function bodyOf(route: Route, thread: string): Buffer | undefined {
  if (route.body.kind === 'none') return undefined
  const values: Record<string, unknown> = {
    ...runInput(thread),
    agentId: 'default',
    name: 'info',
    type: 'agent/run',
    scope: 'info',
  }
  return Buffer.from(JSON.stringify(Object.fromEntries(route.body.keys.map((key) => [key, values[key] ?? 'agent/run']))))
}

function descriptorOf(route: Route, thread: string): RouteDescriptor {
  const path = route.path.map((word) => ({ ':agentId': 'default', ':threadId': thread, ':memoryId': 'm1' })[word] ?? word)
  return classify(route.method, path, new Map(route.query.map((name) => [name, 'default']))) as RouteDescriptor
}

for (const written of TRANSPORTS) {
  const read = TRANSPORTS.find((transport) => transport !== written)!
  for (const name of RUNTIMES) {
    void test(`what is written for ${written} means nothing to ${name} in ${read}`, async (t) => {
      hush(t)
      const runtime = await start(t, name, read)
      const ask = (thread: string, method: 'run' | 'connect'): Asked =>
        read === 'multi-route'
          ? { method: 'POST', path: `/agent/default/${method}`, body: runInput(thread) }
          : {
              method: 'POST',
              path: '',
              body: { method: `agent/${method}`, params: { agentId: 'default' }, body: runInput(thread) },
            }
      const kept = crypto.randomUUID()
      await send(runtime, ask(kept, 'run'))
      const facts = assumedFacts(written)
      for (const route of ROUTES.filter((row) => hasOperation(facts, row))) {
        const thread = crypto.randomUUID()
        const headers = { 'content-type': 'application/json', accept: 'application/json' }
        const request = upstreamRequest(facts, runtime.basePath, {
          descriptor: descriptorOf(route, thread),
          headers,
          body: bodyOf(route, thread),
        })
        const answer = await fetch(`${runtime.url}${request.target}`, {
          method: request.method,
          headers: request.headers,
          ...(request.body === undefined ? {} : { body: Buffer.concat(request.body as Buffer[]) }),
        })
        await answer.text()
        t.ok([400, 404, 405, 415].includes(answer.status), `${route.method} ${route.id}: ${answer.status}`)
        t.equal((await send(runtime, ask(thread, 'connect'))).text, '', `${route.id}: no agent ran`)
      }
      t.match((await send(runtime, ask(kept, 'connect'))).text, 'RUN_FINISHED', 'and what was there is there')
    })
  }
}
