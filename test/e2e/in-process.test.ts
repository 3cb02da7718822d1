/** The ready server with runtime and gateway in one process, used by two people with the real client. */
import { test } from 'tap'
import { startServer } from '../../examples/deployments/in-process/server.ts'
import { startIssuer } from '../../examples/issuer.ts'
import { clearThreads } from '../../examples/runtime.ts'
import { ChatCore } from '../../testing/support/chat-core.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'

for (const transport of ['rest', 'single', 'auto'] as const) {
  void test(`two people chat, list and stop, and neither gets at the other’s: ${transport}`, async (t) => {
    clearThreads()
    const { folder, remove } = makeFolder()
    const issuer = await startIssuer()
    const server = await startServer(0, { ISSUER_URL: issuer.issuer, THREADWARDEN_DATA: folder })
    const open = async (who: 'alice' | 'bob') => ChatCore.open(server.base, { transport, token: await issuer.signIn(who) })
    const [alice, bob] = [await open('alice'), await open('bob')]
    t.teardown(async () => {
      await Promise.all([alice.close(), bob.close()])
      await server.close()
      await issuer.close()
      remove()
    })
    const [hers, his] = [crypto.randomUUID(), crypto.randomUUID()]
    const chat = [
      { role: 'user', text: 'hello' },
      { role: 'assistant', text: 'Echo: hello' },
    ]
    t.strictSame(await alice.say(hers, 'hello'), chat)
    t.strictSame(await bob.say(his, 'hello'), chat)
    t.strictSame(await alice.threads(), [hers])
    t.strictSame(await bob.threads(), [his])
    t.strictSame([...alice.errors, ...bob.errors], [])

    t.match(await bob.read(`/threads/${hers}/messages`), { status: 403, json: { code: 'not-owner' } })
    t.match(await bob.read(`/threads/${hers}/state`), { status: 404, json: { code: 'not-found' } })
    t.strictSame(await bob.replay(hers), [])

    const endless = crypto.randomUUID()
    const running = alice.say(endless, 'endless')
    await until(() => alice.said(endless).length > 1)
    t.match(await bob.stop(endless), { status: 403, json: { code: 'not-owner' } })
    t.match(await alice.stop(endless), { status: 200, json: { stopped: true } })
    t.match((await running)[1]?.text, /^1 /)
  })
}
