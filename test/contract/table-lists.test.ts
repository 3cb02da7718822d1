/** Lists from the table before a runtime of 1.54: it answers 422 to all of it, or has no way to be asked, and says nothing of either. */
import { test } from 'tap'
import { startOldRuntime } from '../../examples/runtime-1.54/runtime.ts'
import { TRANSPORTS } from '../../src/core/route/transport.ts'
import { call, runInput, type Call } from '../../testing/support/client.ts'
import { gateBefore } from '../../testing/support/gated.ts'

for (const adapter of ['express', 'hono'] as const) {
  for (const mode of TRANSPORTS) {
    for (const transport of TRANSPORTS) {
      void test(`1.54 ${adapter}, ${mode}, ${transport} client: auto lists and changes threads in the table`, async (t) => {
        t.capture(console, 'error')
        t.capture(console, 'warn')
        const runtime = await startOldRuntime({ adapter, mode })
        t.teardown(() => runtime.close())
        const config = { upstream: { transport: 'auto' }, ownership: { lists: 'auto' } }
        const { base, gateway, alice, bob } = await gateBefore(t, runtime.url, { config })
        await gateway.ready()
        const ask = async (path: string, options: Call = {}) => {
          const { status, json } = await call(`${base}${path}`, { token: alice, transport, ...options })
          return [status, json] as const
        }
        const served = { list: true, inspect: false, mutations: true, realtimeMetadata: false }
        const [, info] = await ask('/info')
        t.match(info, transport === 'multi-route' ? { threadEndpoints: served } : { singleRoute: { threadEndpoints: served } })
        const thread = crypto.randomUUID()
        t.equal((await ask('/agent/default/run', { body: runInput(thread) }))[0], 200)
        t.match(await ask('/threads?agentId=default'), [200, { threads: [{ id: thread, name: null }], nextCursor: null }])
        t.strictSame(await ask('/threads?agentId=default', { token: bob }), [200, { threads: [], nextCursor: null }])
        const agentId = 'default'
        const named = await ask(`/threads/${thread}`, { method: 'PATCH', body: { agentId, name: 'Holidays' } })
        t.match(named, [200, { id: thread, name: 'Holidays' }])
        const archived = await ask(`/threads/${thread}/archive`, { body: { agentId } })
        t.strictSame(archived, [200, { threadId: thread, archived: true }])
        t.match(await ask('/threads?includeArchived=true'), [200, { threads: [{ id: thread, archived: true }] }])
        const refused = await ask(`/threads/${thread}`, { method: 'DELETE', token: bob, body: { agentId } })
        t.match(refused, [403, { code: 'not-owner' }])
        const deleted = await ask(`/threads/${thread}`, { method: 'DELETE', body: { agentId } })
        t.strictSame(deleted, [200, { threadId: thread, deleted: true }])
        t.strictSame(await ask('/threads?includeArchived=true'), [200, { threads: [], nextCursor: null }])
      })
    }
  }
}
