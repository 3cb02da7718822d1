/** Warnings about what a policy says of LangGraph servers, and errors of their configuration. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import type { Changes } from '../../testing/support/configuration.ts'
import { configFile } from '../../testing/support/program.ts'
import { commandsOn } from '../cli/deployment.ts'
import { graphsAt } from './adopted.ts'

const CHAT = { name: 'chat', routes: ['langgraph/runs/create'], allow: ['signed-in'], threads: ['own'] }
const REST = { name: 'rest', routes: ['langgraph/info'], allow: ['signed-in'] }

/** What `validate` prints on stderr for a policy, or for none. */
async function validated(t: Test, changes: Changes, policy: object | null = null): Promise<string> {
  const { file, folder } = configFile(t, { ...changes, ...(policy === null ? {} : { policy: './policy.json' }) })
  if (policy !== null) writeFileSync(join(folder, 'policy.json'), JSON.stringify({ version: 1, ...policy }, null, 1))
  const { stdout, stderr } = await commandsOn(t, file).command('validate')
  return stdout + stderr
}

const GRAPHS = graphsAt('http://127.0.0.1:2024')

void test('parts of a run that reach further than its input are warned of, for the file and in a rule', async (t) => {
  const parts = {
    options: ['webhook', 'durability', 'supersteps', 'context'],
    command: ['resume', 'goto', 'update'],
    configurable: ['model'],
  }
  for (const policy of [{ langgraph: parts, rules: [CHAT] }, { rules: [{ ...CHAT, langgraph: parts }] }]) {
    const said = await validated(t, GRAPHS, policy)
    t.match(said, /langgraph\.options\.0: webhook is unsafe: callers choose an address/)
    t.match(said, /langgraph\.options\.2: supersteps is unsafe/)
    t.match(said, /langgraph\.options\.3: context is unsafe/)
    t.match(said, /langgraph\.command\.1: goto is unsafe: callers choose the next node/)
    t.match(said, /langgraph\.command\.2: update is unsafe/)
    t.match(said, /langgraph\.configurable\.0: model is unsafe: callers choose its value/)
    t.equal(said.split('is unsafe').length, 7, 'and nothing else is')
  }
})

void test('message rules that have no effect on runs of a graph are warned of', async (t) => {
  const messages = { size: '1KiB', history: 'verify', most: 20 }
  const said = await validated(t, GRAPHS, { rules: [{ ...CHAT, messages }, REST] })
  t.match(said, 'messages.size, messages.history have no effect on langgraph/runs/create')
  t.notMatch(await validated(t, GRAPHS, { rules: [{ ...CHAT, messages: { most: 20 } }] }), 'no effect')
})

void test('a policy without rules for a configured LangGraph server is warned of, and one for others is not', async (t) => {
  const runtime = { rules: [{ routes: ['info'], allow: ['signed-in'] }] }
  const closed = /rules: no rule allows a route of a LangGraph server: the gateway refuses every request to it/
  t.match(await validated(t, GRAPHS, runtime), closed)
  t.notMatch(await validated(t, {}, runtime), /langgraph/i, 'without such a server its routes are not missed')
  const some = await validated(t, GRAPHS, { rules: [REST] })
  t.notMatch(some, closed)
  t.match(some, /no caller may use langgraph\/assistants\/search, .*: no rule allows it/)
  t.notMatch(some, /agent\/run/, 'without a runtime its routes are not missed')
  t.notMatch(await validated(t, GRAPHS), /warning/, 'the default policy has all of them')
})

void test('a deny rule forwards nothing, so it has no langgraph', async (t) => {
  const deny = { name: 'no', routes: ['langgraph/runs/create'], deny: ['signed-in'], langgraph: { options: ['durability'] } }
  t.match(await validated(t, GRAPHS, { rules: [CHAT, deny] }), /rules\.1\.langgraph: is for allow rules only/)
})

void test('errors of a LangGraph upstream say what to write', async (t) => {
  for (const [changes, message] of [
    [{ 'upstream.kind': 'langgraph' }, /upstream\.kind: is only for upstreams \(write the LangGraph server under upstreams/],
    [
      graphsAt('http://127.0.0.1:1', { 'upstreams.graphs.transport': 'multi-route' }),
      /graphs\.transport: is only for runtimes \(remove it\)/,
    ],
    [
      graphsAt('http://127.0.0.1:1', { 'upstreams.graphs.userScoped': true }),
      /graphs\.userScoped: is only for runtimes \(remove it\)/,
    ],
    [graphsAt('http://127.0.0.1:1', { 'upstreams.graphs.lists': 'table' }), /graphs\.lists: is only for runtimes \(remove it\)/],
    [
      graphsAt('http://127.0.0.1:1', { 'upstreams.graphs.kind': 'LangGraph' }),
      /graphs\.kind: is not a kind of upstream \(write runtime or langgraph\)/,
    ],
    [
      graphsAt('http://127.0.0.1:1', { 'upstreams.graphs.headers': { 'X-Auth-Scheme': 'langsmith' } }),
      /graphs\.headers: X-Auth-Scheme would switch off the authentication of the server \(remove it\)/,
    ],
  ] as const) {
    t.match(await validated(t, changes), message)
  }
})
