/**
 * The example's agent: a tool is authorised, then confirmed, then executed (docs/contributing/specification-map.md, "Authentication" 9), and nobody who shows no
 * good credential gets as far as the agent's code.
 */
import { request as send, type OutgoingHttpHeaders } from 'node:http'
import { test, type Test } from 'tap'
import { startAgent } from '../../examples/agent.ts'
import { ChatAgent } from '../../examples/chat-agent.ts'
import { startRuntime } from '../../examples/runtime.ts'
import { useTool } from '../../examples/tool.ts'
import { PermissionDenied, type AgentUser } from '../../src/sdk/agent/index.ts'
import { runInput } from '../../testing/support/client.ts'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { assertion, ASSERTION_TRUST, TRUST, userToken } from './credentials.ts'

const OPERATOR: AgentUser = { user_id: 'olga', roles: [], permissions: ['threads:operate'] }
const MEMBER: AgentUser = { user_id: 'bob', roles: [], permissions: [] }

/** A tool that writes down when it is executed. */
function makeTool() {
  const executed: string[] = []
  const execute = ({ user_id }: AgentUser): string => `Done for ${String(executed.push(user_id))}.`
  return { executed, tool: { permission: 'threads:operate', question: 'Sure?', execute } }
}

void test('a tool is executed when it is authorised and confirmed, and not before both', (t) => {
  const { tool, executed } = makeTool()
  t.throws(() => useTool(tool, MEMBER, false), PermissionDenied, 'who may not is not even asked')
  t.throws(() => useTool(tool, MEMBER, true), PermissionDenied, 'and a yes makes no difference')
  t.equal(useTool(tool, OPERATOR, false), 'Sure?')
  t.same(executed, [], 'nothing has happened so far')
  t.equal(useTool(tool, OPERATOR, true), 'Done for 1.')
  t.same(executed, ['olga'])
  t.end()
})

/** What the agent says to one message. */
async function said(user: AgentUser, tool: ReturnType<typeof makeTool>['tool'], content: string): Promise<string> {
  const agent = new ChatAgent({ configurable: { auth_user: user } }, tool)
  const input = { ...(runInput('t1', content) as object), state: {}, forwardedProps: {} }
  let text = ''
  // runInput returns untyped JSON.
  for await (const event of agent.run(input as never, new AbortController().signal)) {
    if ('delta' in event) text += String(event.delta)
  }
  return text
}

void test('the agent keeps that order, in a conversation', async (t) => {
  const { tool, executed } = makeTool()
  t.equal(await said(MEMBER, tool, '/admin'), 'Permission denied: bob lacks threads:operate')
  t.equal(await said(MEMBER, tool, '/admin confirm'), 'Permission denied: bob lacks threads:operate')
  t.equal(await said(OPERATOR, tool, '/admin'), 'Sure?')
  t.same(executed, [])
  t.equal(await said(OPERATOR, tool, '/admin confirm'), 'Done for 1.')
})

/** An agent that believes the gateway's assertions alone, and the status of a run there. */
async function agentBehindGateway(t: Test) {
  const server = await startKeyServer(t)
  server.answers.set('/.well-known/jwks.json', { body: { keys: ASSERTION_TRUST.keys } })
  const { issuer, audience } = ASSERTION_TRUST
  const agent = await startAgent({
    issuer: TRUST.issuer,
    audience: TRUST.audience,
    assertion: { issuer, audience, jwksUri: `${server.url}/.well-known/jwks.json` },
  })
  t.teardown(() => agent.close())
  return { server, agent, run: (headers: OutgoingHttpHeaders, threadId = 't1') => post(agent.url, headers, threadId) }
}

/** A run with headers just as they are given; `fetch` would make one of two. */
function post(url: string, headers: OutgoingHttpHeaders, threadId: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const outgoing = send(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers } }, (answer) => {
    let text = ''
    answer.setEncoding('utf8')
    answer.on('data', (some: string) => (text += some))
    answer.on('end', () => resolve(`${String(answer.statusCode)} ${text}`))
  })
  outgoing.on('error', reject)
  outgoing.end(JSON.stringify({ ...(runInput(threadId, 'Hi') as object), state: {}, forwardedProps: {} }))
  return promise
}

void test('an agent behind the gateway learns the user from the assertion', async (t) => {
  const { agent, run } = await agentBehindGateway(t)
  t.match(await run({ 'x-threadwarden-assertion': assertion(), authorization: 'Bearer anything' }), /^200 /)
  t.match(agent.requests.at(-1)?.user, { user_id: 'corp:alice', role: 'member', thread: 't1' })
})

void test('the real runtime hands the assertion on', async (t) => {
  const { agent } = await agentBehindGateway(t)
  const runtime = await startRuntime({ agentUrl: agent.url })
  t.teardown(() => runtime.close())
  const headers = { 'x-threadwarden-assertion': assertion({ thread: 't3' }) }
  t.match(await post(`${runtime.url}${runtime.basePath}/agent/remote/run`, headers, 't3'), /^200 [^]*RUN_FINISHED/)
  t.match(agent.requests.at(-1)?.user, { user_id: 'corp:alice', thread: 't3' })
})

void test('it refuses whoever comes with anything else, before its code runs', async (t) => {
  const { agent, run } = await agentBehindGateway(t)
  const good = assertion()
  const refused = (code: string) => `401 {"error":"${code}"}`
  t.equal(await run({ 'x-threadwarden-assertion': good }, 't2'), refused('other-thread'))
  t.equal(await run({ authorization: `Bearer ${userToken()}` }), refused('credential-missing'))
  t.equal(await run({ 'x-threadwarden-assertion': userToken() }), refused('credential-invalid'))
  t.equal(await run({ 'x-threadwarden-assertion': [good, good] }), refused('credential-invalid'))
  t.equal(agent.requests.filter(({ user }) => user !== undefined).length, 1, 'the one for another thread')
})

void test('while the gateway’s keys cannot be had it says so, and blames nobody', async (t) => {
  const { server, run } = await agentBehindGateway(t)
  server.answers.clear()
  t.equal(await run({ 'x-threadwarden-assertion': assertion() }), '503 {"error":"keys-unavailable"}')
})

void test('two Authorization headers are refused, though node:http shows the first alone', async (t) => {
  const server = await startKeyServer(t)
  server.keys(...TRUST.keys)
  const agent = await startAgent({ issuer: TRUST.issuer, audience: TRUST.audience, jwksUri: `${server.url}/jwks` })
  t.teardown(() => agent.close())
  const value = `Bearer ${userToken()}`
  t.match(await post(agent.url, { authorization: value }, 't1'), /^200 /)
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  const headers = ['host', 'agent', 'authorization', value, 'authorization', 'Bearer x']
  send(agent.url, { method: 'POST', headers }, (answer) => resolve(answer.resume().statusCode)).end('{}')
  t.equal(await promise, 401)
})
