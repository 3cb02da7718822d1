/** The authentication handler of docs/agents.md, in a LangGraph server behind the real runtime, with a real issuer. */
import { test } from 'tap'
import { startIssuer } from '../../examples/issuer.ts'
import { startLangGraph } from '../../examples/langgraph.ts'
import { startRuntime } from '../../examples/runtime.ts'
import { blocks, page } from '../docs/markdown.ts'
import { call, runInput } from '../support/client.ts'

const SOURCE = new URL('../../src/agent/index.ts', import.meta.url).href
const EXAMPLE = blocks(page('docs/agents.md'), 'ts').find((block) => block.includes('new Auth()')) ?? ''

void test('the handler tells the graph who is asking, and lets nobody else in', async (t) => {
  const issuer = await startIssuer()
  t.teardown(() => issuer.close())
  const langGraph = await startLangGraph(
    EXAMPLE.replace('threadwarden/agent', SOURCE).replace('https://login.example.com/', issuer.issuer),
  )
  t.teardown(() => langGraph.close())
  const search = (headers: Record<string, string>) =>
    call(`${langGraph.url}/threads/search`, { method: 'POST', headers, body: {} })
  t.equal((await search({})).status, 401)
  t.equal((await search({ authorization: 'Bearer x.y.z' })).status, 401)
  t.equal((await search({ 'x-auth-scheme': 'langsmith' })).status, 401, 'the Studio is nobody special')

  const runtime = await startRuntime({ langGraphUrl: langGraph.url })
  t.teardown(() => runtime.close())
  const token = await issuer.signIn('olga')
  const answer = await call(`${runtime.url}${runtime.basePath}/agent/graph/run`, {
    token,
    headers: { 'x-threadwarden-assertion': 'copied' },
    body: runInput(crypto.randomUUID()),
  })
  const said = answer.text.replaceAll('\\', '')
  t.match(said, /"langgraph_auth_user":{"identity":"olga","role":"operator","permissions":\["threads:operate"\]/)
  t.match(said, /"x-threadwarden-assertion":"copied"/, 'other headers are copied into the run')
  t.notOk(said.includes(token), 'this one is not')
})
