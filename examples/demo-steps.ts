/** The scenes of the demo: each request, and the answer that is expected. */
import { randomUUID } from 'node:crypto'
import { ORIGIN, SERVICE_HEADER, type DemoGateway } from './demo-gateway.ts'
import type { Answer, Line, Exchanges } from './demo-exchanges.ts'

/** Access tokens by user. */
export interface Tokens {
  readonly alice: string
  readonly bob: string
  readonly olga: string
  /** Alice's claims and key id, signed with another key. */
  readonly forged: string
}

const LETTER = 'Draft my letter of resignation'

/** The problem. Leaves the runtime empty. */
export async function withoutGateway({ heading, tell }: Exchanges, { alice, bob }: Tokens): Promise<void> {
  heading('Without the gateway: requests go directly to the runtime')
  await tell({ ...chat('alice', alice, 'alice-1', LETTER), says: 'Alice starts the thread alice-1' })
  await tell({ ...chat('bob', bob, 'bob-1', 'Hello'), says: 'Bob starts the thread bob-1' })
  await tell({
    ...read('bob', bob, '/threads/alice-1/messages'),
    ...sees([LETTER, `Echo: ${LETTER}`], contents),
    says: (answer) => `Bob reads Alice's thread: "${contents(answer)[0] ?? ''}"`,
  })
  await tell({
    ...read('stranger', undefined, '/threads'),
    ...sees(['alice-1', 'bob-1'], threadIds),
    says: (answer) => `a caller without a token lists all threads: ${threadIds(answer).join(', ')}`,
  })
  await tell({
    who: 'bob',
    method: 'POST',
    path: '/threads/clear',
    token: bob,
    status: 204,
    says: 'Bob deletes the threads of all users',
  })
}

/** The same runtime behind the gateway. */
export async function throughGateway(exchanges: Exchanges, tokens: Tokens, gateway: DemoGateway): Promise<void> {
  await aliceChats(exchanges, tokens)
  await bobStaysOut(exchanges, tokens)
  await listsDiffer(exchanges, tokens)
  await otherTransport(exchanges, tokens)
  await tokensCount(exchanges, tokens)
  await agentKnows(exchanges, tokens)
  await browsersCall(exchanges, tokens)
  await policyChanges(exchanges, tokens, gateway)
  await operatorsClear(exchanges, tokens)
}

async function aliceChats({ heading, tell }: Exchanges, { alice }: Tokens): Promise<void> {
  heading('With the gateway: Alice chats')
  await tell({
    ...chat('alice', alice, 'alice-1', LETTER),
    streams: `Echo: ${LETTER}`,
    says: 'the first message makes Alice the owner; the answer is streamed:',
  })
  await tell({
    ...read('alice', alice, '/threads/alice-1/messages'),
    ...sees([LETTER, `Echo: ${LETTER}`], contents),
    says: 'Alice reads her thread',
  })
}

async function bobStaysOut({ heading, tell }: Exchanges, { alice, bob }: Tokens): Promise<void> {
  heading("Bob knows the id of Alice's thread, but he is not its owner")
  await tell({ ...read('bob', bob, '/threads/alice-1/messages'), ...refused(403, 'not-owner'), says: 'Bob cannot read it' })
  await tell({ ...chat('bob', bob, 'alice-1', 'Hello'), ...refused(403, 'not-owner'), says: 'Bob cannot write to it' })
  await tell({
    ...chat('bob', bob, 'alice-1', 'Hello'),
    path: '/agent/default/connect',
    ...refused(403, 'not-owner'),
    says: 'Bob cannot replay or follow it',
  })
  await tell({
    ...{ who: 'bob', method: 'POST', path: '/agent/default/stop/alice-1', token: bob },
    ...refused(403, 'not-owner'),
    says: 'Bob cannot stop its run',
  })
  const hidden = { ...refused(404, 'not-found'), says: 'to Bob, this route does not exist' }
  await tell({ ...read('bob', bob, '/threads/alice-1/events'), ...hidden })
  await tell({ ...read('bob', bob, '/threads/alice-1/state'), ...hidden })
  await tell({ ...read('alice', alice, '/threads/alice-1/state'), says: 'to Alice, it does' })
}

async function listsDiffer({ heading, tell }: Exchanges, { alice, bob, olga }: Tokens): Promise<void> {
  heading('Each user lists only their own threads')
  await tell({ ...chat('bob', bob, 'bob-1', 'Hello'), streams: 'Echo: Hello', says: 'Bob starts a thread of his own:' })
  await tell({ ...read('alice', alice, '/threads'), ...sees(['alice-1'], threadIds), says: 'Alice sees alice-1' })
  await tell({ ...read('bob', bob, '/threads'), ...sees(['bob-1'], threadIds), says: 'Bob sees bob-1' })
  await tell({
    ...read('olga', olga, '/threads'),
    ...sees([], threadIds),
    says: 'Olga, an operator, owns no thread and sees none',
  })
}

async function otherTransport({ heading, tell }: Exchanges, { alice, bob }: Tokens): Promise<void> {
  heading('Frontends may use the single-route transport: a JSON envelope to the base path')
  const tunnel = (path: string): object => ({ method: 'resource/request', params: { path, httpMethod: 'GET' } })
  const envelope = { method: 'POST', path: '', status: 200 }
  await tell({
    ...{ ...envelope, who: 'alice', token: alice, body: tunnel('/threads') },
    ...sees(['alice-1'], threadIds),
    says: (answer) => `Alice lists her threads: ${threadIds(answer).join(', ')}`,
  })
  await tell({
    ...{ ...envelope, who: 'bob', token: bob, body: tunnel('/threads/alice-1/messages') },
    ...refused(403, 'not-owner'),
    says: "Bob asks for Alice's messages",
  })
}

async function tokensCount({ heading, tell }: Exchanges, { forged }: Tokens): Promise<void> {
  heading('Without a valid token, no request reaches the runtime')
  const path = '/threads/alice-1/messages'
  await tell({ ...read('stranger', undefined, path), ...refused(401, 'credential-missing'), says: 'no token' })
  await tell({
    ...read('mallory', forged, path),
    ...refused(401, 'credential-invalid'),
    says: "forged token: Alice's claims, signed with another key",
  })
  await tell({
    ...chat('mallory', forged, 'alice-1', 'Hello'),
    ...refused(401, 'credential-invalid'),
    says: 'the same forged token, to write',
  })
}

async function agentKnows({ heading, tell }: Exchanges, { alice, bob, olga }: Tokens): Promise<void> {
  heading('The agent gets the token of the caller, and verifies it as well')
  await tell({
    ...chat('alice', alice, 'alice-2', 'Hi', 'remote'),
    streams: 'Hello alice (member). You said: Hi',
    says: 'the agent knows that the caller is Alice:',
  })
  await tell({
    ...chat('bob', bob, 'bob-2', '/admin confirm', 'remote'),
    streams: 'Permission denied: bob lacks threads:operate',
    says: 'the agent refuses Bob a tool:',
  })
  await tell({
    ...chat('olga', olga, 'olga-1', '/admin confirm', 'remote'),
    streams: 'Done, on behalf of olga.',
    says: 'the agent uses the tool for Olga:',
  })
}

async function browsersCall({ heading, tell }: Exchanges, { alice }: Tokens): Promise<void> {
  heading(`Browsers: only the application at ${ORIGIN} may call`)
  const preflight = { who: 'browser', method: 'OPTIONS', path: '/threads', headers: asks(ORIGIN) }
  const allowed = ({ headers }: Answer): string | null => headers.get('access-control-allow-origin')
  await tell({ ...preflight, status: 204, ...sees(ORIGIN, allowed), says: 'preflight from the application' })
  await tell({
    ...preflight,
    headers: asks('http://evil.test'),
    ...refused(403, 'not-allowed'),
    says: 'preflight from http://evil.test',
  })
  const { name, value } = SERVICE_HEADER
  await tell({
    ...read('alice', alice, '/threads/alice-1/messages'),
    headers: { origin: ORIGIN, [name]: 'mine' },
    ...sees([value], (answer) => arrivedValues(answer, name)),
    says: (answer) => `${name}: mine reaches the runtime as "${arrivedValues(answer, name).join('", "')}"`,
  })
}

/** Restricts one agent to users with a permission. */
const REMOTE_FOR_SOME = `rules:
  - name: remote-for-some
    routes: [agent/run, agent/connect, agent/suggest, agent/stop]
    agents: [remote]
    deny: [signed-in]
    unless: { permissions: { any: ['threads:operate'] } }
`

async function policyChanges({ heading, note, tell }: Exchanges, { bob, olga }: Tokens, gateway: DemoGateway): Promise<void> {
  heading('The policy changes while the gateway runs: the agent remote now needs a permission')
  await gateway.changePolicy((shipped) => shipped.replace('rules:\n', REMOTE_FOR_SOME))
  await tell({ ...chat('bob', bob, 'bob-2', 'Hi', 'remote'), ...refused(403, 'not-allowed'), says: 'Bob does not have it' })
  await tell({ ...read('bob', bob, '/info'), ...sees(['default'], agents), says: "the agent is not in Bob's list of agents" })
  await tell({
    ...chat('olga', olga, 'olga-1', 'Hi', 'remote'),
    streams: 'Hello olga (operator). You said: Hi',
    says: 'Olga has the permission:',
  })
  await gateway.changePolicy((shipped) => shipped.replace('allow: [signed-in]', 'allow: [signd-in]'))
  note('  The policy file gets a typo. The log names the line, and the last valid policy stays active.')
  await tell({ ...read('bob', bob, '/info'), ...sees(['default'], agents), says: 'nothing has changed for Bob' })
  await gateway.changePolicy((shipped) => shipped)
  await tell({
    ...read('bob', bob, '/info'),
    ...sees(['default', 'remote'], agents),
    says: 'the first policy is back: Bob has both agents',
  })
}

async function operatorsClear({ heading, tell }: Exchanges, { alice, bob, olga }: Tokens): Promise<void> {
  heading('Only operators may delete all threads')
  const clear = { method: 'POST', path: '/threads/clear' }
  await tell({ ...clear, who: 'bob', token: bob, ...refused(403, 'not-allowed'), says: 'Bob is not an operator' })
  await tell({
    ...read('olga', olga, '/threads/alice-1/messages'),
    ...refused(403, 'not-owner'),
    says: "Olga is an operator, but she cannot read Alice's thread",
  })
  await tell({ ...clear, who: 'olga', token: olga, status: 204, says: 'Olga deletes all threads' })
  await tell({ ...read('alice', alice, '/threads'), ...sees([], threadIds), says: 'Alice has no threads left' })
}

/** A message to an agent. */
function chat(who: string, token: string, threadId: string, content: string, agent = 'default'): Omit<Line, 'says'> {
  const path = `/agent/${agent}/run`
  return { who, method: 'POST', path, token, body: runInput(threadId, content), status: 200 }
}

/** The body that starts a run: AG-UI's RunAgentInput with one message. */
function runInput(threadId: string, content: string): object {
  return { threadId, runId: randomUUID(), messages: [{ id: randomUUID(), role: 'user', content }], tools: [], context: [] }
}

function read(who: string, token: string | undefined, path: string): Omit<Line, 'says'> {
  return { who, method: 'GET', path, status: 200, ...(token !== undefined && { token }) }
}

function sees(expected: unknown, seen: (answer: Answer) => unknown): Pick<Line, 'expected' | 'seen'> {
  return { expected, seen }
}

/** A refusal by the gateway; no request may have reached the runtime. */
function refused(status: number, code: string): Pick<Line, 'status' | 'expected' | 'seen'> {
  const seen = ({ json, arrived }: Answer) => ({ code: (json as { code?: unknown } | null)?.code, reached: arrived.length > 0 })
  return { status, ...sees({ code, reached: false }, seen) }
}

/** The headers of a preflight. */
function asks(origin: string): Record<string, string> {
  return { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' }
}

function contents({ json }: Answer): string[] {
  return ((json as { messages?: { content: string }[] } | null)?.messages ?? []).map(({ content }) => content)
}

function agents({ json }: Answer): string[] {
  return Object.keys((json as { agents?: object } | null)?.agents ?? {})
}

function threadIds({ json }: Answer): string[] {
  return ((json as { threads?: { id: string }[] } | null)?.threads ?? []).map(({ id }) => id).sort()
}

/** The values of a header in the request that reached the runtime, one for each header line. */
function arrivedValues({ arrived }: Answer, name: string): string[] {
  const raw = arrived.flatMap(({ rawHeaders }) => rawHeaders)
  return raw.filter((_, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === name)
}
