/**
 * The specification's "Rules" 1-6 against the real runtime. Each test says what the runtime does by itself, so that it
 * shows the rule at work and not an upstream that would have refused anyway.
 */
import { end } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import type { Pair } from '../../testing/support/pair.ts'
import { stackEachPair } from '../../testing/support/pair-stacks.ts'
import { ofCallers, type Stack } from '../../testing/support/stack.ts'

const alices = crypto.randomUUID()

const testEachStack = stackEachPair({}, (stack) =>
  stack.call(`${stack.base}/agent/default/run`, { token: stack.tokens.alice, body: runInput(alices, 'a secret') }),
)

/** What the runtime says when nobody stands before it. */
const direct = ({ runtime }: Stack, pair: Pair, path: string) =>
  call(`${runtime.url}/api/copilotkit${path}`, { transport: pair.upstream })

for (const part of ['events', 'state'] as const) {
  void testEachStack(
    `rules 1 and 2: threads/${part} is guarded with 404, and the upstream is not asked`,
    async (t, stack, pair) => {
      t.equal((await direct(stack, pair, `/threads/${alices}/${part}`)).status, 200, 'the runtime alone shows it to anybody')
      stack.runtime.requests.length = 0
      const foreign = await stack.call(`${stack.base}/threads/${alices}/${part}`, { token: stack.tokens.bob })
      t.equal(foreign.status, 404)
      t.equal(codeOf(foreign), 'not-found')
      const missing = await stack.call(`${stack.base}/threads/${crypto.randomUUID()}/${part}`, { token: stack.tokens.bob })
      t.equal(missing.text, foreign.text, 'a foreign thread and one that does not exist look the same')
      t.same(ofCallers(stack.runtime.requests), [])
      const own = await stack.call(`${stack.base}/threads/${alices}/${part}`, { token: stack.tokens.alice })
      t.equal(own.status, 200)
      t.equal(own.text, (await direct(stack, pair, `/threads/${alices}/${part}`)).text, 'the owner reads what the runtime has')
    },
  )
}

const THREAD_ROUTES = [
  ['agent/stop', 'POST', (id: string) => `/agent/default/stop/${id}`],
  ['threads/messages', 'GET', (id: string) => `/threads/${id}/messages`],
  ['threads/update (PATCH)', 'PATCH', (id: string) => `/threads/${id}`],
  ['threads/update (DELETE)', 'DELETE', (id: string) => `/threads/${id}`],
  ['threads/archive', 'POST', (id: string) => `/threads/${id}/archive`],
] as const

for (const [name, method, path] of THREAD_ROUTES) {
  void testEachStack(`rule 3: ${name} of a thread that is not the caller's is 403`, async (t, stack) => {
    const body = method === 'GET' ? undefined : name === 'agent/stop' ? {} : { agentId: 'default' }
    const ask = (token: string, id: string) => stack.call(`${stack.base}${path(id)}`, { method, token, body })
    stack.runtime.requests.length = 0
    for (const id of [alices, crypto.randomUUID()]) {
      const refused = await ask(stack.tokens.bob, id)
      t.equal(refused.status, 403)
      t.equal(codeOf(refused), 'not-owner')
    }
    t.same(ofCallers(stack.runtime.requests), [])
    const own = await ask(stack.tokens.alice, alices)
    t.ok([200, 422].includes(own.status), `the owner gets the runtime's own answer (${own.status})`)
    t.equal(ofCallers(stack.runtime.requests).length, 1)
  })
}

for (const route of ['run', 'connect', 'suggest'] as const) {
  void testEachStack(
    `rule 3: agent/${route} with another's threadId in its body is 403, and the body still reaches the runtime otherwise`,
    async (t, stack) => {
      stack.runtime.requests.length = 0
      for (const agent of ['default', 'remote', 'toString-like']) {
        const refused = await stack.call(`${stack.base}/agent/${agent}/${route}`, {
          token: stack.tokens.bob,
          body: runInput(alices),
        })
        t.equal(refused.status, 403, `whatever agent is named: ${agent}`)
        t.equal(codeOf(refused), 'not-owner')
      }
      t.same(ofCallers(stack.runtime.requests), [])
      const own = await stack.call(`${stack.base}/agent/default/${route}`, {
        token: stack.tokens.alice,
        body: runInput(alices, 'again'),
      })
      t.equal(own.status, 200)
      t.match(own.text, /"type":"RUN_FINISHED"/)
    },
  )
}

void testEachStack('rule 3: annotate with another threadId in its body is 403', async (t, stack) => {
  const annotate = (token: string) =>
    stack.call(`${stack.base}/annotate`, { token, body: { threadId: alices, type: 'thumbs', payload: {} } })
  t.equal((await annotate(stack.tokens.bob)).status, 403)
  t.equal((await annotate(stack.tokens.alice)).status, 422, 'the owner gets the answer of a runtime without the managed platform')
})

void testEachStack('rule 4: the list is built from the ownership table, for each caller their own', async (t, stack, pair) => {
  const bobs = crypto.randomUUID()
  await stack.call(`${stack.base}/agent/default/run`, { token: stack.tokens.bob, body: runInput(bobs) })
  const ids = (reply: { json: unknown }) => (reply.json as { threads: { id: string }[] }).threads.map((thread) => thread.id)
  const everything = ids(await direct(stack, pair, '/threads'))
  t.ok(everything.includes(alices) && everything.includes(bobs), 'the runtime alone lists everybody')
  t.same(ids(await stack.call(`${stack.base}/threads?agentId=default`, { token: stack.tokens.alice })), [alices])
  t.same(ids(await stack.call(`${stack.base}/threads`, { token: stack.tokens.bob })), [bobs])
  t.same(ids(await stack.call(`${stack.base}/threads`, { token: stack.tokens.olga })), [], 'an operator is not an owner')
})

void testEachStack('rule 5: threads/clear is for operators', async (t, stack, pair) => {
  const wiped = crypto.randomUUID()
  await stack.call(`${stack.base}/agent/default/run`, { token: stack.tokens.alice, body: runInput(wiped) })
  const clear = (token: string) => stack.call(`${stack.base}/threads/clear`, { method: 'POST', token })
  t.equal(codeOf(await clear(stack.tokens.alice)), 'not-allowed')
  const messages = async () => (await direct(stack, pair, `/threads/${wiped}/messages`)).json as { messages: unknown[] }
  t.not((await messages()).messages.length, 0, 'the thread is still there')
  t.equal((await clear(stack.tokens.olga)).status, 204)
  t.same((await messages()).messages, [])
})

void testEachStack(
  'rule 6: a runner that does not serve the thread read routes answers 422, and the owner gets that answer',
  async (t, stack) => {
    const own = crypto.randomUUID()
    await stack.call(`${stack.base}/agent/default/run`, { token: stack.tokens.alice, body: runInput(own) })
    // How the runtime itself tells such a runner (agent-runner: supportsLocalThreadEndpoints).
    Object.defineProperty(stack.runtime.runtime.runner, 'ɵsupportsLocalThreadEndpoints', { value: false, configurable: true })
    t.teardown(() => Object.defineProperty(stack.runtime.runtime.runner, 'ɵsupportsLocalThreadEndpoints', { value: true }))
    for (const path of [`/threads/${own}/messages`, `/threads/${own}/events`, `/threads/${own}/state`, '/threads']) {
      const answer = await stack.call(`${stack.base}${path}`, { token: stack.tokens.alice })
      t.equal(answer.status, 422, path)
      t.match(answer.text, /Missing CopilotKitIntelligence configuration/)
    }
    t.equal((await stack.call(`${stack.base}/threads/${own}/messages`, { token: stack.tokens.bob })).status, 403)
  },
)

end()
