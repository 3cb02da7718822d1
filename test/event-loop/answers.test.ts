/** Neither what an upstream answers nor what the table lists holds the event loop for long (budget.ts). */
import { test } from 'tap'
import { NAMES } from '../../testing/event-loop/deployment.ts'
import { startGateways, within } from './budget.ts'

void test('what the upstream lists does not hold the event loop', { timeout: 300_000 }, async (t) => {
  const { gateways, urls, token, ask, upstream } = await startGateways(t)
  for (let at = 0; at < 30; at += 1) {
    const run = Buffer.from(`{"threadId":"t${at}","runId":"r","messages":[],"tools":[],"context":[]}`)
    t.equal(await ask({ to: 'owned', path: '/agent/default/run', type: 'application/json' }, run), 200)
  }
  for (const page of ['short', 'many', 'long', 'named', 'braced'] as const) {
    upstream.list(page)
    for (const to of ['routes', 'owned', 'observed'] as const) {
      await within(t, gateways, `a page of the list, ${page}, ${to}`, async () => {
        const answer = await fetch(`${urls[to] ?? ''}/api/copilotkit/threads?agentId=default&limit=1000`, {
          headers: { authorization: `Bearer ${token()}` },
        })
        const { threads } = (await answer.json()) as { readonly threads: readonly unknown[] }
        if (to === 'owned') t.equal(threads.length, page === 'short' ? 20 : 30)
      })
    }
  }
})

void test('nor does the history of a thread, and what a caller claims of it', { timeout: 300_000 }, async (t) => {
  const { gateways, ask, upstream } = await startGateways(t)
  const run = { to: 'verified', path: '/agent/default/run', type: 'application/json' } as const
  const claiming = (count: number): Buffer => {
    const messages = Array.from({ length: count }, (_, at) => ({ id: `m${at}`, role: 'assistant', content: '' }))
    return Buffer.from(JSON.stringify({ threadId: 'h', runId: 'r', messages, tools: [], context: [] }))
  }
  t.equal(await ask(run, claiming(0)), 200)
  for (const [name, status] of [
    ['plain', 200],
    ['calling', 403],
  ] as const) {
    upstream.remember(name)
    await within(t, gateways, `a history of 31 MiB, ${name}`, async () => {
      t.equal(await ask(run, claiming(50_000)), status)
    })
  }
})

void test('nor does what the table lists', { timeout: 300_000 }, async (t) => {
  const { gateways, urls, token } = await startGateways(t)
  for (const [user, name] of Object.entries(NAMES)) {
    await within(t, gateways, `a thousand threads of ${user}`, async () => {
      const answer = await fetch(`${urls['table'] ?? ''}/api/copilotkit/threads?agentId=default&limit=1000`, {
        headers: { authorization: `Bearer ${token(user)}` },
      })
      const { threads } = (await answer.json()) as { readonly threads: readonly { readonly name: string }[] }
      t.equal(threads.length, 1000)
      t.ok(threads.every((thread) => thread.name === name))
    })
  }
})
