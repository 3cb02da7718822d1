/** The specification's "Authentication" 1-11, as far as they concern a gateway, with a real issuer, runtime and agent. */
import { createSign, generateKeyPairSync } from 'node:crypto'
import { end } from 'tap'
import { codeOf, runInput } from '../../testing/support/client.ts'
import { stackEachPair } from '../../testing/support/pair-stacks.ts'
import { ofCallers } from '../../testing/support/stack.ts'

const testEachStack = stackEachPair({
  config: { upstream: { headers: { 'X-Service-Token': 'the-servers' } } },
  runtime: { transcription: true },
})

/** Every route of the specification, as somebody without a credential would try it. */
const EVERY_ROUTE = [
  ['GET', '/info'],
  ['POST', '/agent/default/run'],
  ['POST', '/agent/default/connect'],
  ['POST', '/agent/default/suggest'],
  ['POST', '/agent/default/stop/T1'],
  ['POST', '/transcribe'],
  ['GET', '/threads'],
  ['GET', '/threads/T1/messages'],
  ['PATCH', '/threads/T1'],
  ['DELETE', '/threads/T1'],
  ['POST', '/threads/T1/archive'],
  ['POST', '/threads/subscribe'],
  ['GET', '/threads/T1/events'],
  ['GET', '/threads/T1/state'],
  ['POST', '/threads/clear'],
  ['POST', '/annotate'],
  ['GET', '/memories'],
  ['POST', '/memories/recall'],
  ['GET', '/inspector-metadata'],
  ['GET', '/cpk-debug-events'],
  ['GET', '/no-such-route'],
  ['PUT', '/info'],
  ['GET', ''],
  ['POST', ''],
] as const

/** A token of alice's whose signature is another key's. */
function forged(token: string): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const [head = '', claims = ''] = token.split('.')
  return `${head}.${claims}.${createSign('RSA-SHA256').update(`${head}.${claims}`).sign(privateKey, 'base64url')}`
}

void testEachStack('authentication 1: the bearer token is passed on by the runtime to the agent', async (t, stack) => {
  stack.agent.requests.length = 0
  const answer = await stack.call(`${stack.base}/agent/remote/run`, {
    token: stack.tokens.alice,
    body: runInput(crypto.randomUUID()),
  })
  t.equal(answer.status, 200)
  t.equal(stack.agent.requests.at(-1)?.headers.authorization, `Bearer ${stack.tokens.alice}`)
})

void testEachStack('authentication 2: the token is verified, not believed', async (t, stack) => {
  stack.runtime.requests.length = 0
  for (const token of [
    forged(stack.tokens.alice),
    `${stack.tokens.alice}x`,
    'alice',
    'a.b.c',
    stack.tokens.alice.replace(/\.[^.]*$/, '.'),
  ]) {
    const answer = await stack.call(`${stack.base}/info`, { token })
    t.equal(answer.status, 401)
    t.equal(codeOf(answer), 'credential-invalid')
  }
  t.same(ofCallers(stack.runtime.requests), [])
})

void testEachStack(
  'authentication 3: the gate comes before routing, on every route without exception, with 401 and a JSON error',
  async (t, stack) => {
    stack.runtime.requests.length = 0
    for (const [method, path] of EVERY_ROUTE) {
      const answer = await stack.call(`${stack.base}${path}`, { method, ...(method === 'POST' ? { body: {} } : {}) })
      t.equal(answer.status, 401, `${method} ${path}`)
      t.equal(answer.headers.get('content-type'), 'application/json')
      t.type((answer.json as { error: unknown }).error, 'string')
      t.equal(codeOf(answer), 'credential-missing')
      t.equal(answer.headers.get('www-authenticate'), 'Bearer')
    }
    t.same(ofCallers(stack.runtime.requests), [], 'nothing reached the upstream')
  },
)

void testEachStack(
  'authentication 4: suggest and transcribe, where identifyUser is never called, are gated like the rest',
  async (t, stack) => {
    const recording = { audio: 'aGVhcmQ=', mimeType: 'audio/webm' }
    t.equal((await stack.call(`${stack.base}/transcribe`, { body: recording })).status, 401)
    t.equal((await stack.call(`${stack.base}/agent/default/suggest`, { body: runInput(crypto.randomUUID()) })).status, 401)
    const heard = await stack.call(`${stack.base}/transcribe`, { token: stack.tokens.alice, body: recording })
    t.match(heard.json, { text: 'heard 5 bytes' })
  },
)

void testEachStack('authentication 4: a recording goes through as multipart', async (t, stack) => {
  const form = new FormData()
  form.set('audio', new Blob(['sound'], { type: 'audio/webm' }), 'recording.webm')
  const answer = await fetch(`${stack.base}/transcribe`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stack.tokens.alice}` },
    body: form,
  })
  t.match(await answer.json(), { text: 'heard 5 bytes' })
})

void testEachStack('authentication 5: every request resolves its own user', async (t, stack) => {
  const [alices, bobs] = [crypto.randomUUID(), crypto.randomUUID()]
  // Interleaved, over the connections that fetch keeps open.
  await Promise.all([
    stack.call(`${stack.base}/agent/default/run`, { token: stack.tokens.alice, body: runInput(alices) }),
    stack.call(`${stack.base}/agent/default/run`, { token: stack.tokens.bob, body: runInput(bobs) }),
  ])
  const tries = Array.from({ length: 20 }, (_, at) => at % 2 === 0)
  const statuses = await Promise.all(
    tries.map((isAlice) =>
      stack.call(`${stack.base}/threads/${alices}/messages`, { token: isAlice ? stack.tokens.alice : stack.tokens.bob }),
    ),
  )
  t.same(
    statuses.map((reply) => reply.status),
    tries.map((isAlice) => (isAlice ? 200 : 403)),
  )
})

void testEachStack('authentication 6: the scheme is Bearer, exactly', async (t, stack) => {
  for (const value of [
    'Basic YWxpY2U6eA==',
    `bearer ${stack.tokens.alice}`,
    stack.tokens.alice,
    'Bearer',
    `Bearer  ${stack.tokens.alice}`,
  ]) {
    const answer = await stack.call(`${stack.base}/info`, { headers: { authorization: value } })
    t.equal(answer.status, 401, value.slice(0, 10))
    t.equal(codeOf(answer), 'credential-invalid')
  }
})

void testEachStack(
  'authentication 7: a self-hosted agent verifies the forwarded token itself and runs with the user',
  async (t, stack) => {
    const answer = await stack.call(`${stack.base}/agent/remote/run`, {
      token: stack.tokens.alice,
      body: runInput(crypto.randomUUID()),
    })
    t.match(spoken(answer.text), /Hello alice \(member\)/)
    t.match(stack.agent.requests.at(-1)?.user, { user_id: 'alice', role: 'member', permissions: [] })
  },
)

void testEachStack(
  'authentication 8: headers configured on the server win over same-named headers of the browser, and arrive once',
  async (t, stack) => {
    stack.runtime.requests.length = 0
    await stack.call(`${stack.base}/info`, {
      token: stack.tokens.alice,
      headers: { 'x-service-token': 'the-browsers', 'x-user-id': 'bob' },
    })
    const { rawHeaders = [] } = ofCallers(stack.runtime.requests).at(-1) ?? {}
    const names = rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
    t.equal(names.filter((name) => name === 'x-service-token').length, 1)
    t.equal(ofCallers(stack.runtime.requests).at(-1)?.headers['x-service-token'], 'the-servers')
    t.notOk(names.includes('x-user-id'), 'identity never comes from a header that a caller could send')
  },
)

/** The text of an answer stream, its pieces put together. */
const spoken = (stream: string) => Array.from(stream.matchAll(/"delta":"([^"]*)"/g), (match) => match[1]).join('')

void testEachStack('authentication 9: role and permissions arrive where tools are gated', async (t, stack) => {
  const say = async (token: string, text: string) =>
    spoken((await stack.call(`${stack.base}/agent/remote/run`, { token, body: runInput(crypto.randomUUID(), text) })).text)
  t.match(await say(stack.tokens.bob, '/admin confirm'), /Permission denied/)
  t.match(await say(stack.tokens.olga, '/admin confirm'), /Done, on behalf of olga/)
})

void testEachStack(
  'authentication 10: what the client asks first shows the rejection after sign-out, in both of its ways',
  async (t, stack) => {
    const rest = { transport: 'multi-route' } as const
    const [get, post] = [await stack.call(`${stack.base}/info`, rest), await stack.call(stack.base, { body: { method: 'info' } })]
    t.equal(get.status, 401)
    t.equal(post.status, 401)
    t.same(post.json, get.json, 'the client shows the second answer: it says the same')
    t.match((post.json as { message: string }).message, /Sign in/)
    const back = await stack.call(stack.base, { token: stack.tokens.alice, body: { method: 'info' } })
    t.equal(back.status, 200)
    const { threadEndpoints, ...info } = (await stack.call(`${stack.base}/info`, { ...rest, token: stack.tokens.alice }))
      .json as object & {
      readonly threadEndpoints: object
    }
    t.match(back.json, { ...info, singleRoute: { threadEndpoints } }, 'and the same again, as it is true by envelope')
  },
)

void testEachStack('authentication 11: raw tokens are not logged, the resolved user id is', async (t, stack) => {
  await stack.call(`${stack.base}/info`, { token: stack.tokens.alice })
  await stack.call(`${stack.base}/info`, { token: forged(stack.tokens.bob) })
  const text = JSON.stringify(stack.gateway.lines)
  t.match(text, /"principal":"corp:alice"/)
  for (const token of [stack.tokens.alice, stack.tokens.bob, stack.tokens.olga]) {
    for (const part of token.split('.')) t.notOk(text.includes(part), 'no part of a token is in the log')
  }
})

end()
