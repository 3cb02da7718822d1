/** What the commands about decisions say of requests to a LangGraph server, with the configuration of its deployment. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { deploymentFile } from '../../testing/support/deployment.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { run } from '../cli/in-process.ts'

const ISSUER = 'https://login.example.com/'
const environment = {
  LANGGRAPH_URL: 'http://127.0.0.1:1',
  ISSUER_URL: ISSUER,
  PAGE_ORIGIN: 'https://app.example.com',
  ADMIN_CREDENTIAL: 'a'.repeat(40),
}
const THREAD = '0198c0de-0000-7000-8000-000000000001'
const RUN = '0198c0de-0000-7000-8000-000000000002'

function commands(t: Test) {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = (name: string, value: unknown): string => {
    writeFileSync(join(folder, name), JSON.stringify(value))
    return join(folder, name)
  }
  const claims = file('alice.json', { iss: ISSUER, sub: 'alice', aud: 'agent-chat', exp: 4_000_000_000 })
  const command = (...args: readonly string[]) => run(t, [...args, '--config', deploymentFile('langgraph')], { environment })
  const explain = async (method: string, target: string, body: object | null, ...more: readonly string[]) => {
    const named = body === null ? [] : ['--body', file('body.json', body)]
    const asked = ['--method', method, '--target', `/graphs/${target}`, '--claims', claims, ...named, ...more]
    const { stdout, code } = await command('explain', ...asked)
    return { stdout, code }
  }
  return { folder, file, command, explain }
}

const OWN = ['--owner', 'corp:alice'] as const

void test('explain names the assistant, the rule, and what of a run a policy refuses', async (t) => {
  const { explain } = commands(t)
  const run = (more: object, ...args: readonly string[]) =>
    explain('POST', `threads/${THREAD}/runs/stream`, { assistant_id: 'notes', input: {}, ...more }, ...args)
  const permitted = await run({ durability: 'sync', strange: 1 }, ...OWN)
  t.equal(permitted.code, 0)
  t.match(permitted.stdout, `langgraph/runs/create (POST), agent notes, thread ${THREAD}`)
  t.match(permitted.stdout, /permitted by "langgraph-chat" \(line \d+\)/)
  t.match(permitted.stdout, /^limits +requests .*runs .*streams .*tokens .*body 64MiB$/m)
  t.match(permitted.stdout, /"durability":"sync"/)
  t.match(permitted.stdout, 'dropped: strange')
  for (const [more, reason, note] of [
    [
      { webhook: 'https://x', after_seconds: 1, context: null },
      'run-option',
      'does not allow the option webhook, after_seconds: langgraph.options does not name it',
    ],
    [{ command: { goto: 'x', resume: 1 } }, 'command', 'does not allow the command goto: langgraph.command does not name it'],
    [
      { config: { configurable: { model: 'x', user_id: 'bob' } } },
      'configurable',
      'does not allow config.configurable model: langgraph.configurable does not name it',
    ],
    [
      { config: { configurable: { user_id: 'bob' } } },
      'configurable',
      'no policy can open config.configurable user_id: it names a thread',
    ],
  ] as const) {
    const { code, stdout } = await run(more, ...OWN)
    t.equal(code, 3)
    t.match(stdout, `refused: 403 not-allowed (${reason}-not-allowed)`)
    t.match(stdout, note)
  }
  t.match((await run({})).stdout, 'Assumed here: it does not have the thread (--history)')
  t.match((await run({}, '--history', 'some')).stdout, /refused: 403 not-owner \(thread-has-history\)[^]*it has the thread/)
})

void test('explain of a join assumes that the run is of the thread, and says so', async (t) => {
  const { explain } = commands(t)
  for (const [method, rest] of [
    ['GET', '/join'],
    ['GET', '/stream'],
    ['POST', '/cancel'],
    ['GET', ''],
  ] as const) {
    const { code, stdout } = await explain(method, `threads/${THREAD}/runs/${RUN}${rest}`, null, ...OWN)
    t.equal(code, 0)
    t.match(stdout, `thread ${THREAD}, run ${RUN}`)
    t.match(stdout, `${method} /threads/${THREAD}/runs/${RUN}${rest}`)
    t.match(stdout, 'assumed: the run is of this thread. The gateway asks the server first')
  }
})

void test('explain says what the gateway adds to searches, new threads and copies, and which routes stay closed', async (t) => {
  const { explain } = commands(t)
  t.match((await explain('POST', 'threads/search', {})).stdout, 'the server gets the ids of the threads that the caller may read')
  t.match((await explain('POST', 'threads/count', {})).stdout, 'the server gets the ids of the threads that the caller may read')
  const created = (await explain('POST', 'threads', {})).stdout
  t.match(created, 'the body names no thread: the gateway chooses a random id')
  t.match(created, 'the gateway tells the server to refuse an id that it has (if_exists: raise)')
  t.match(created, 'the request claims the thread for corp:alice')
  t.notMatch(created, /asks the upstream first|threadwarden threads owner/)
  t.notMatch((await explain('POST', 'threads', { thread_id: THREAD })).stdout, 'chooses a random id')
  const copied = (await explain('POST', `threads/${THREAD}/copy`, null, ...OWN)).stdout
  t.match(copied, 'the copy becomes a thread of the caller')
  t.match(copied, /^limits .*newThreads/m)
  const closed = await explain('POST', 'store/items/search', {})
  t.match(closed, { code: 3, stdout: /\(route-closed\)[^]*no policy can open this route of a LangGraph server/ })
})

void test('routes lists what no policy can open', async (t) => {
  const { command } = commands(t)
  const { stdout } = await command('routes')
  t.match(stdout, /^POST +\/graphs\/threads\/:threadId\/runs\/stream +langgraph\/runs\/create$/m)
  t.match(stdout, /# no policy can open these routes of a LangGraph server\n[^]*^POST +\/graphs\/runs\/stream$/m)
  const { alwaysClosed } = JSON.parse((await command('routes', '--json')).stdout) as { readonly alwaysClosed: readonly object[] }
  t.ok(alwaysClosed.some((one) => JSON.stringify(one) === '{"upstream":"graphs","method":"any","path":"/graphs/store/items"}'))
})

const CHAT = { name: 'chat', routes: ['langgraph/runs/create'], allow: ['signed-in'], threads: ['own', 'unknown'] }

void test('diff shows what a run may set, and compares assistants', async (t) => {
  const { command, file } = commands(t)
  const before = file('before.json', { version: 1, rules: [CHAT] })
  const wider = { options: ['durability'], command: ['resume', 'goto'], configurable: ['model'], input: ['messages'] }
  const after = file('after.json', { version: 1, rules: [{ ...CHAT, langgraph: wider, messages: { roles: ['user'] } }] })
  const { code, stdout } = await command('diff', before, after)
  t.equal(code, 1)
  t.match(stdout, /before +permitted by "chat"[^]*options: none\n +command: resume\n +configurable: none\n +input: all/)
  t.match(
    stdout,
    /after +permitted by "chat"[^]*messages: user[^]*options: durability\n +command: goto, resume\n +configurable: model\n +input: messages/,
  )
  const one = file('one.json', { version: 1, rules: [{ ...CHAT, agents: ['notes'] }] })
  t.match(
    (await command('diff', before, one)).stdout,
    /^closed\n +routes +POST langgraph\/runs\/create\n[^]*agents +any-other-agent$/m,
  )
})

void test('policy tests name an assistant, answer interrupts, and list the threads of a search', async (t) => {
  const { command, file } = commands(t)
  const read = { name: 'read', routes: ['langgraph/threads/read'], allow: ['signed-in'], threads: ['own'] }
  const search = { name: 'search', routes: ['langgraph/threads/search'], allow: ['signed-in'] }
  file('policy.json', { version: 1, rules: [{ ...CHAT, agents: ['notes'], interrupts: 'refuse' }, read, search] })
  const run = { as: 'alice', route: 'langgraph/runs/create', thread: 't-1' }
  const tests = {
    version: 1,
    policy: './policy.json',
    principals: { alice: { issuer: 'corp', id: 'alice' } },
    threads: { 't-1': { owner: 'alice' }, 't-2': { owner: 'corp:bob' } },
    tests: [
      { name: 'notes', ...run, agent: 'notes', expect: { outcome: 'permitted', rule: 'chat' } },
      { name: 'another', ...run, agent: 'other', expect: { outcome: 'refused', reason: 'agent-not-allowed' } },
      {
        name: 'answer',
        ...run,
        agent: 'notes',
        answers: true,
        expect: { outcome: 'refused', reason: 'interrupt-answer-not-allowed' },
      },
      { name: 'list', as: 'alice', lists: ['t-1'] },
    ],
  }
  t.match(await command('test', file('tests.json', tests)), { code: 0, stdout: /4 passed, 0 failed/ })
  const wrong = { ...tests, tests: [{ name: 'list', as: 'alice', lists: ['t-1', 't-2'] }] }
  t.match(await command('test', file('wrong.json', wrong)), {
    code: 1,
    stdout: /expected a list of t-1, t-2; got t-1: t-2 refused/,
  })
})
