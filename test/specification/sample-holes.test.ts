/**
 * The holes of the official "scope threads yourself" sample (runtime-behaviour.md, "The documented sample"), each against the real runtime: what
 * gets through an upstream that follows the sample must not get through here.
 */
import { end } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { stackEachPair } from '../../testing/support/pair-stacks.ts'
import { ofCallers, startStack, type Stack } from '../../testing/support/stack.ts'

const alices = crypto.randomUUID()

const testEachStack = stackEachPair({ runtime: { debug: true, exposeMemoryRoutes: true } }, (stack) =>
  stack.call(`${stack.base}/agent/default/run`, { token: stack.tokens.alice, body: runInput(alices) }),
)

/** Sends as bob; gives the answer and what the runtime received. */
async function asBob(stack: Stack, path: string, options: { method?: string; body?: unknown } = {}) {
  stack.runtime.requests.length = 0
  const answer = await stack.call(`${stack.base}${path}`, { ...options, token: stack.tokens.bob })
  return { answer, received: ofCallers(stack.runtime.requests).map(({ method, url }) => `${method} ${url}`) }
}

void testEachStack('hole 1: suggest checks the threadId of its body', async (t, stack) => {
  const { answer, received } = await asBob(stack, '/agent/default/suggest', { body: runInput(alices) })
  t.same([answer.status, codeOf(answer), received], [403, 'not-owner', []])
})

void testEachStack('hole 2: annotate checks the threadId of its body', async (t, stack) => {
  const { answer, received } = await asBob(stack, '/annotate', { body: { threadId: alices, type: 'x' } })
  t.same([answer.status, codeOf(answer), received], [403, 'not-owner', []])
})

void testEachStack('hole 3: an empty or missing threadId does not skip the check', async (t, stack) => {
  for (const threadId of ['', null, undefined, 0, false, [], {}, [alices]]) {
    for (const route of ['run', 'connect', 'suggest']) {
      const { answer, received } = await asBob(stack, `/agent/default/${route}`, { body: runInput(threadId) })
      t.same([answer.status, codeOf(answer), received], [400, 'thread-id-invalid', []], `${route} ${JSON.stringify(threadId)}`)
    }
  }
})

void testEachStack('hole 4: a new conversation can be begun, and then it is the caller’s alone', async (t, stack) => {
  const id = crypto.randomUUID()
  const begun = await asBob(stack, '/agent/default/run', { body: runInput(id) })
  t.equal(begun.answer.status, 200)
  t.equal((await stack.call(`${stack.base}/threads/${id}/messages`, { token: stack.tokens.alice })).status, 403)
})

void testEachStack(
  'hole 4: with verify, a thread that the upstream had before the gateway cannot be claimed',
  async (t, _stack, pair) => {
    const { upstream } = pair
    const old = crypto.randomUUID()
    const verifying = await startStack(t, { pair, config: { ownership: { unknownThread: 'verify' } } })
    await call(`${verifying.runtime.url}/api/copilotkit/agent/default/run`, {
      body: runInput(old, 'from before'),
      transport: upstream,
    })
    const claim = (threadId: string) =>
      verifying.call(`${verifying.base}/agent/default/run`, { token: verifying.tokens.bob, body: runInput(threadId) })
    const refused = await claim(old)
    t.same([refused.status, codeOf(refused)], [403, 'not-owner'])
    t.equal((await claim(crypto.randomUUID())).status, 200, 'a new one can')
  },
)

void testEachStack('hole 5: clear, list, the debug feed and the memories are covered', async (t, stack, { upstream }) => {
  const clear = await asBob(stack, '/threads/clear', { method: 'POST' })
  t.same([clear.answer.status, clear.received], [403, []])
  const feed = await asBob(stack, '/cpk-debug-events')
  // No single-route runtime has the feed: nobody is told more.
  t.same([feed.answer.status, feed.received], [upstream === 'single-route' ? 404 : 403, []])
  for (const [method, path] of [
    ['GET', '/memories'],
    ['POST', '/memories/recall'],
    ['POST', '/memories/subscribe'],
    ['DELETE', '/memories/m1'],
  ] as const) {
    // oxfmt-ignore
    const { answer, received } = await asBob(stack, path, { method })
    t.same([answer.status, received], [403, []], `${method} ${path}`)
  }
  const { answer } = await asBob(stack, '/threads')
  t.notOk(answer.text.includes(alices))
})

void testEachStack('hole 6: an id has one spelling', async (t, stack) => {
  const spellings = [
    alices.toUpperCase(),
    alices.replaceAll('-', ''),
    `{${alices}}`,
    `urn:uuid:${alices}`,
    `${alices} `,
    ` ${alices}`,
    `${alices}\n`,
  ]
  const injections = [
    `${alices}/../${alices}`,
    `../threads/${alices}`,
    `x\\..\\${alices}`,
    `${alices}?x=`,
    `${alices}#`,
    `${alices}%2f`,
  ]
  for (const threadId of [...spellings, ...injections]) {
    const { answer, received } = await asBob(stack, '/agent/default/run', { body: runInput(threadId) })
    t.same([answer.status, codeOf(answer), received], [400, 'thread-id-invalid', []], JSON.stringify(threadId))
  }
})

void testEachStack('hole 7: forwardedProps do not reach an agent’s configuration', async (t, stack) => {
  const forwardedProps = {
    config: { configurable: { langgraph_auth_user_id: 'alice' } },
    webhook: 'http://169.254.169.254/',
    threadMetadata: { owner: 'alice' },
    command: { resume: 'yes', goto: 'admin' },
    toolChoice: { type: 'function' },
  }
  await stack.call(`${stack.base}/agent/remote/run`, {
    token: stack.tokens.alice,
    body: runInput(alices, 'hi', { forwardedProps }),
  })
  t.same(stack.agent.requests.at(-1)?.input?.['forwardedProps'], { command: { resume: 'yes' }, toolChoice: { type: 'function' } })
})

end()
