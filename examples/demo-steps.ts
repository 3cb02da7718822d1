/** What the demo shows, scene by scene: who asks for what, and what has to come back. */
import { randomUUID } from 'node:crypto'
import { ORIGIN, SERVICE_HEADER, type DemoGateway } from './demo-gateway.ts'
import type { Answer, Line, Exchanges } from './demo-exchanges.ts'

/** Access tokens by person. */
export interface Tokens {
  readonly alice: string
  readonly bob: string
  readonly olga: string
  /** Says that it is alice's, signed by somebody else. */
  readonly forged: string
}

const LETTER = 'Draft my letter of resignation'

/** Why one wants a gateway. Leaves the runtime empty. */
export async function withoutGateway({ heading, tell }: Exchanges, { alice, bob }: Tokens): Promise<void> {
  heading('Without the gateway: straight at the runtime')
  await tell({ ...chat('alice', alice, 'alice-1', LETTER), says: 'alice chats in thread alice-1' })
  await tell({ ...chat('bob', bob, 'bob-1', 'Hello'), says: 'bob chats in thread bob-1' })
  await tell({
    ...read('bob', bob, '/threads/alice-1/messages'),
    ...sees([LETTER, `Echo: ${LETTER}`], contents),
    says: (answer) => `bob reads alice's thread: "${contents(answer)[0] ?? ''}"`,
  })
  await tell({
    ...read('nobody', undefined, '/threads'),
    ...sees(['alice-1', 'bob-1'], threadIds),
    says: (answer) => `no token, everybody's list: ${threadIds(answer).join(', ')}`,
  })
  await tell({ who: 'bob', method: 'POST', path: '/threads/clear', token: bob, status: 204, says: "wipes everybody's threads" })
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
  heading('Through the gateway: alice chats')
  await tell({
    ...chat('alice', alice, 'alice-1', LETTER),
    streams: `Echo: ${LETTER}`,
    says: 'her first message makes alice-1 hers; the answer comes in pieces:',
  })
  await tell({
    ...read('alice', alice, '/threads/alice-1/messages'),
    ...sees([LETTER, `Echo: ${LETTER}`], contents),
    says: 'she reads it again',
  })
}

async function bobStaysOut({ heading, tell }: Exchanges, { alice, bob }: Tokens): Promise<void> {
  heading("Bob is kept out of alice's thread, though he knows its id")
  await tell({ ...read('bob', bob, '/threads/alice-1/messages'), ...refused(403, 'not-owner'), says: 'cannot read it' })
  await tell({ ...chat('bob', bob, 'alice-1', 'Hello'), ...refused(403, 'not-owner'), says: 'cannot write to it' })
  await tell({
    ...chat('bob', bob, 'alice-1', 'Hello'),
    path: '/agent/default/connect',
    ...refused(403, 'not-owner'),
    says: 'cannot replay or follow it',
  })
  await tell({
    ...{ who: 'bob', method: 'POST', path: '/agent/default/stop/alice-1', token: bob },
    ...refused(403, 'not-owner'),
    says: "cannot stop alice's answer",
  })
  const hidden = { ...refused(404, 'not-found'), says: 'hidden: looks as if it did not exist' }
  await tell({ ...read('bob', bob, '/threads/alice-1/events'), ...hidden })
  await tell({ ...read('bob', bob, '/threads/alice-1/state'), ...hidden })
  await tell({ ...read('alice', alice, '/threads/alice-1/state'), says: 'for alice it does' })
}

async function listsDiffer({ heading, tell }: Exchanges, { alice, bob, olga }: Tokens): Promise<void> {
  heading('Each sees only their own list')
  await tell({ ...chat('bob', bob, 'bob-1', 'Hello'), streams: 'Echo: Hello', says: 'bob chats in a thread of his own:' })
  const says = (answer: Answer): string => threadIds(answer).join(', ') || 'nothing: an operator is no owner'
  await tell({ ...read('alice', alice, '/threads'), ...sees(['alice-1'], threadIds), says })
  await tell({ ...read('bob', bob, '/threads'), ...sees(['bob-1'], threadIds), says })
  await tell({ ...read('olga', olga, '/threads'), ...sees([], threadIds), says })
}

async function otherTransport({ heading, tell }: Exchanges, { alice, bob }: Tokens): Promise<void> {
  heading('A frontend of the other transport posts envelopes; the runtime gets routes')
  const tunnel = (path: string): object => ({ method: 'resource/request', params: { path, httpMethod: 'GET' } })
  const envelope = { method: 'POST', path: '', status: 200 }
  await tell({
    ...{ ...envelope, who: 'alice', token: alice, body: tunnel('/threads') },
    ...sees(['alice-1'], threadIds),
    says: (answer) => `resource/request for /threads: ${threadIds(answer).join(', ')}`,
  })
  await tell({
    ...{ ...envelope, who: 'bob', token: bob, body: tunnel('/threads/alice-1/messages') },
    ...refused(403, 'not-owner'),
    says: "for alice's messages",
  })
}

async function tokensCount({ heading, tell }: Exchanges, { forged }: Tokens): Promise<void> {
  heading('Without a good token nothing reaches the runtime')
  const path = '/threads/alice-1/messages'
  await tell({ ...read('nobody', undefined, path), ...refused(401, 'credential-missing'), says: 'no token' })
  await tell({
    ...read('mallory', forged, path),
    ...refused(401, 'credential-invalid'),
    says: "forged: alice's claims and key id, signed with another key",
  })
  await tell({
    ...chat('mallory', forged, 'alice-1', 'Hello'),
    ...refused(401, 'credential-invalid'),
    says: 'the same token, to write',
  })
}

async function agentKnows({ heading, tell }: Exchanges, { alice, bob, olga }: Tokens): Promise<void> {
  heading('A self-hosted agent learns who asks: it verifies the forwarded token itself')
  await tell({
    ...chat('alice', alice, 'alice-2', 'Hi', 'remote'),
    streams: 'Hello alice (member). You said: Hi',
    says: 'another agent, another thread:',
  })
  await tell({
    ...chat('bob', bob, 'bob-2', '/admin confirm', 'remote'),
    streams: 'Permission denied: bob lacks threads:operate',
    says: 'so it can refuse a tool by who asks:',
  })
  await tell({
    ...chat('olga', olga, 'olga-1', '/admin confirm', 'remote'),
    streams: 'Done, on behalf of olga.',
    says: 'and use it for those who may:',
  })
}

async function browsersCall({ heading, tell }: Exchanges, { alice }: Tokens): Promise<void> {
  heading(`Browsers: the application at ${ORIGIN} may call, and cannot pose as the server`)
  const preflight = { who: 'browser', method: 'OPTIONS', path: '/threads', headers: asks(ORIGIN) }
  const allowed = ({ headers }: Answer): string | null => headers.get('access-control-allow-origin')
  await tell({ ...preflight, status: 204, ...sees(ORIGIN, allowed), says: 'preflight, which never carries a token' })
  await tell({ ...preflight, headers: asks('http://evil.test'), ...refused(403, 'not-allowed'), says: 'from http://evil.test' })
  const { name, value } = SERVICE_HEADER
  await tell({
    ...read('alice', alice, '/threads/alice-1/messages'),
    headers: { origin: ORIGIN, [name]: 'mine' },
    ...sees([value], (answer) => arrivedValues(answer, name)),
    says: (answer) => `sent ${name}: mine; the runtime got "${arrivedValues(answer, name).join('", "')}", once`,
  })
}

/** Keeps an agent to those with a permission; everything else stays as it is. */
const REMOTE_FOR_SOME = `rules:
  - name: remote-for-some
    routes: [agent/run, agent/connect, agent/suggest, agent/stop]
    agents: [remote]
    deny: [signed-in]
    unless: { permissions: { any: ['threads:operate'] } }
`

async function policyChanges({ heading, note, tell }: Exchanges, { bob, olga }: Tokens, gateway: DemoGateway): Promise<void> {
  heading('An operator edits the policy while it runs: the agent remote is for some alone')
  await gateway.changePolicy((shipped) => shipped.replace('rules:\n', REMOTE_FOR_SOME))
  await tell({ ...chat('bob', bob, 'bob-2', 'Hi', 'remote'), ...refused(403, 'not-allowed'), says: 'bob is none of them' })
  await tell({ ...read('bob', bob, '/info'), ...sees(['default'], agents), says: 'and no longer hears of it' })
  await tell({
    ...chat('olga', olga, 'olga-1', 'Hi', 'remote'),
    streams: 'Hello olga (operator). You said: Hi',
    says: 'olga has the permission:',
  })
  await gateway.changePolicy((shipped) => shipped.replace('allow: [signed-in]', 'allow: [everybody]'))
  note('A typo in the file: the log says which line, and the last good policy stays in force.')
  await tell({ ...read('bob', bob, '/info'), ...sees(['default'], agents), says: 'nothing has changed' })
  await gateway.changePolicy((shipped) => shipped)
  await tell({ ...read('bob', bob, '/info'), ...sees(['default', 'remote'], agents), says: 'mended: everybody has both again' })
}

async function operatorsClear({ heading, tell }: Exchanges, { alice, bob, olga }: Tokens): Promise<void> {
  heading('Wiping all threads is for operators')
  const clear = { method: 'POST', path: '/threads/clear' }
  await tell({ ...clear, who: 'bob', token: bob, ...refused(403, 'not-allowed'), says: 'bob is no operator' })
  await tell({
    ...read('olga', olga, '/threads/alice-1/messages'),
    ...refused(403, 'not-owner'),
    says: "olga is one; that lets her read nobody's thread",
  })
  await tell({ ...clear, who: 'olga', token: olga, status: 204, says: 'she may clear' })
  await tell({ ...read('alice', alice, '/threads'), ...sees([], threadIds), says: 'nothing left' })
}

/** A message to an agent; whether its thread is new is for the others to say. */
function chat(who: string, token: string, threadId: string, content: string, agent = 'default'): Omit<Line, 'says'> {
  const path = `/agent/${agent}/run`
  return { who, method: 'POST', path, token, body: runInput(threadId, content), status: 200 }
}

/** The body that starts a run: AG-UI's RunAgentInput with one message. */
export function runInput(threadId: string, content: string): object {
  return { threadId, runId: randomUUID(), messages: [{ id: randomUUID(), role: 'user', content }], tools: [], context: [] }
}

function read(who: string, token: string | undefined, path: string): Omit<Line, 'says'> {
  return { who, method: 'GET', path, status: 200, ...(token !== undefined && { token }) }
}

function sees(expected: unknown, seen: (answer: Answer) => unknown): Pick<Line, 'expected' | 'seen'> {
  return { expected, seen }
}

/** The gateway's own refusal, with nothing that reached the runtime. */
function refused(status: number, code: string): Pick<Line, 'status' | 'expected' | 'seen'> {
  const seen = ({ json, arrived }: Answer) => ({ code: (json as { code?: unknown } | null)?.code, reached: arrived.length > 0 })
  return { status, ...sees({ code, reached: false }, seen) }
}

/** What a browser sends before it lets a page of `origin` call. */
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

/** The values of a header as they stood on the wire to the runtime, one for each line of it. */
function arrivedValues({ arrived }: Answer, name: string): string[] {
  const raw = arrived.flatMap(({ rawHeaders }) => rawHeaders)
  return raw.filter((_, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === name)
}
