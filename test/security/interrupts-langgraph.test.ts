/**
 * Answers to interrupts of a graph on a LangGraph server behind the real runtime: each form that resumes the graph is in the audit,
 * and `interrupts: refuse` refuses it (docs/contributing/runtime-behaviour.md, "Run input").
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import tap, { after, before, end, test } from 'tap'
import type { AuditLine } from '../../src/audit/line.ts'
import { startLangGraph, type LangGraph } from '../../examples/langgraph.ts'
import { startRuntime, type Runtime } from '../../examples/runtime.ts'
import { call } from '../../testing/support/client.ts'
import { sayOnFailure } from '../../testing/support/decided.ts'
import { makeFolder, startTestGateway, type TestGateway } from '../../testing/support/gateway.ts'
import { runGraph as run, type Turn } from '../../testing/support/graph-run.ts'
import { PAIRS } from '../../testing/support/pair.ts'
import { SHIPPED } from '../../testing/support/policies.ts'
import { startSharedStack, type Stack } from '../../testing/support/stack.ts'
import { until } from '../../testing/support/until.ts'

// A run takes the server half a second of waiting, so several wait together.
tap.jobs = 4
// The runtime tells of every run that fails.
tap.capture(console, 'error')
tap.capture(console, 'warn')

let langGraph: LangGraph
let stack: Stack
let single: Runtime
let bare: string
let gate: Gate
const gates: Gate[] = []

interface Gate {
  readonly gateway: TestGateway
  readonly agent: string
  readonly lines: () => readonly AuditLine[]
  readonly remove: () => void
}

const REFUSING = SHIPPED.replace('\ntools: pass\n', '\ntools: pass\ninterrupts: refuse\n')

before(async () => {
  langGraph = await startLangGraph()
  stack = await startSharedStack({ runtime: { langGraphUrl: langGraph.url } })
  single = await startRuntime({ mode: 'single-route', langGraphUrl: langGraph.url })
  bare = `${stack.runtime.url}${stack.runtime.basePath}/agent/graph`
  gate = await gateWith(SHIPPED)
})
tap.beforeEach((t) => {
  for (const { gateway } of gates) sayOnFailure(t, gateway)
})
after(async () => {
  for (const { gateway, remove } of gates) {
    await gateway.close()
    remove()
  }
  await single.close()
  await stack.close()
  await langGraph.close()
})

async function gateWith(policy: string, url = stack.runtime.url): Promise<Gate> {
  const { folder, remove } = makeFolder()
  const file = join(folder, 'audit.jsonl')
  const issuer = { issuer: stack.issuer, audiences: ['agent-chat'], algorithms: ['RS256'] }
  const audit = { to: 'file', file } as const
  const gateway = await startTestGateway({ authentication: { issuers: { corp: issuer } }, upstream: { url }, audit }, { policy })
  await gateway.ready()
  const lines = (): readonly AuditLine[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as AuditLine)
  const started = { gateway, agent: `${gateway.url}/api/copilotkit/agent/graph`, lines, remove }
  gates.push(started)
  return started
}

/** A thread of alice's in which the graph waits for an answer, with the id of its interrupt. */
async function waiting(agent: string, turn: Turn = {}): Promise<{ threadId: string; interruptId: string }> {
  const { threadId, nodes } = await run(agent, stack.tokens.alice, {}, { ...turn, text: 'this needs approval' })
  if (nodes.includes('approve')) throw new Error('the graph did not wait')
  const interruptId = (await interrupts(threadId))[0]
  if (interruptId === undefined) throw new Error(`the graph has no interrupt: ${langGraph.log()}`)
  return { threadId, interruptId }
}

async function interrupts(threadId: string): Promise<readonly string[]> {
  const { json } = await call(`${langGraph.url}/threads/${threadId}/state`)
  const { tasks = [] } = json as { tasks?: { interrupts?: { id: string }[] }[] }
  return tasks.flatMap((task) => (task.interrupts ?? []).map(({ id }) => id))
}

type Form = readonly [name: string, more: (id: string) => Record<string, unknown>]

const props = (command: unknown): Record<string, unknown> => ({ forwardedProps: { command } })

/** With what the audit says about each. */
const RESUMING: readonly (readonly [...Form, answer: string, named: boolean])[] = [
  [
    'resume: approved',
    (interruptId) => ({ resume: [{ interruptId, status: 'resolved', payload: { approved: true } }] }),
    'approved',
    true,
  ],
  [
    'resume: refused',
    (interruptId) => ({ resume: [{ interruptId, status: 'resolved', payload: { approved: false } }] }),
    'refused',
    true,
  ],
  ['resume: cancelled', (interruptId) => ({ resume: [{ interruptId, status: 'cancelled' }] }), 'cancelled', true],
  [
    'resume: edited',
    (interruptId) => ({ resume: [{ interruptId, status: 'resolved', payload: { decisions: [{ type: 'edit' }] } }] }),
    'answered',
    true,
  ],
  ['command.resume', () => props({ resume: { decisions: [{ type: 'approve' }] } }), 'approved', false],
  ['command.resume as JSON text', () => props({ resume: '{"approved":false}' }), 'refused', false],
  ['command.resume by id', (id) => props({ resume: { [id]: 'approve' } }), 'approved', true],
  ['command.resume, free text', () => props({ resume: 'only on Monday' }), 'answered', false],
]

for (const [name, more, answer, isNamed] of RESUMING) {
  void test(`${name} resumes the graph, is in the audit, and can be refused`, { buffered: true }, async (t) => {
    const refusing = await gateWith(REFUSING)
    const { threadId, interruptId } = await waiting(refusing.agent)
    const refused = await run(refusing.agent, stack.tokens.alice, more(interruptId), { threadId })
    t.same([refused.status, refused.code], [403, 'not-allowed'])
    t.same(await interrupts(threadId), [interruptId], 'the graph still waits')
    const expected = [{ id: isNamed ? interruptId : null, answer }]
    await until(() => refusing.lines().length === 2)
    t.match(refusing.lines()[1], {
      interrupts: expected,
      reason: 'interrupt-answer-not-allowed',
      principal: { id: 'corp:alice' },
      thread: threadId,
    })

    const own = await waiting(gate.agent)
    const resumed = await run(gate.agent, stack.tokens.alice, more(own.interruptId), { threadId: own.threadId })
    t.same(resumed.nodes, ['answer', 'approve', 'audit'], 'where the policy lets it through, the graph goes on')
    await until(() => gate.lines().filter(({ thread }) => thread === own.threadId).length === 2)
    const [first, second] = gate.lines().filter(({ thread }) => thread === own.threadId)
    t.equal(first?.interrupts, null, 'a run that answers nothing says so')
    t.strictSame(second?.interrupts, [{ id: isNamed ? own.interruptId : null, answer }])
    t.equal(second?.decision, 'permitted')
  })
}

/** Null is read as an answer by the runtime's agent: it is refused in any case. */
const ODD: readonly Form[] = [
  ['null in command.resume', () => props({ resume: null })],
  ['an empty text in command.resume', () => props({ resume: '' })],
  ['an empty list in command.resume', () => props({ resume: [] })],
  ['false in command.resume', () => props({ resume: false })],
  [
    'the map of the runtime’s agent',
    (id) => props({ resume: { __agui_resume_map__: { [id]: { status: 'resolved', payload: true } } } }),
  ],
  ['an empty map', () => props({ resume: {} })],
  ['both forms', (interruptId) => ({ resume: [{ interruptId, status: 'resolved' }], ...props({ resume: true }) })],
  ['an empty list beside command.resume', () => ({ resume: [], ...props({ resume: true }) })],
  ['an entry of another status', (interruptId) => ({ resume: [{ interruptId, status: 'RESOLVED', payload: true }] })],
  ['snake_case in an entry', (id) => ({ resume: [{ interrupt_id: id, status: 'resolved', payload: true }] })],
  ['an object for the list', (interruptId) => ({ resume: { interruptId, status: 'resolved', payload: true } })],
  ['a text for the list', () => ({ resume: 'yes' })],
  ['a list for command', () => props([{ resume: true }])],
  ['JSON text for command', () => props('{"resume":true}')],
  ['another case', () => ({ forwardedProps: { Command: { Resume: true } } })],
]

/** The runtime ignores or refuses them, or the gateway drops them. */
const IGNORED: readonly Form[] = [
  ['null', () => ({ resume: null })],
  ['an empty list', () => ({ resume: [] })],
  ['a name with a point', () => ({ forwardedProps: { 'command.resume': true } })],
  ['an empty command', () => props({})],
  ['null for command', () => props(null)],
  ['forwarded_props', () => ({ forwarded_props: { command: { resume: true } } })],
  ['another case of resume', (interruptId) => ({ Resume: [{ interruptId, status: 'resolved', payload: true }] })],
  ['resume in forwardedProps', (interruptId) => ({ forwardedProps: { resume: [{ interruptId, status: 'resolved' }] } })],
  ['resume in state', (interruptId) => ({ state: { resume: [{ interruptId, status: 'resolved' }], command: { resume: true } } })],
  ['a message of a tool', (id) => ({ messages: [{ id: 'm', role: 'tool', toolCallId: id, content: 'true' }] })],
]

void test('no other form gets round interrupts: refuse, on any route and transport', { buffered: true }, async (t) => {
  const multi = await gateWith(REFUSING)
  const one = await gateWith(REFUSING, single.url)
  for (const { client: transport, upstream } of PAIRS) {
    const { agent } = upstream === 'single-route' ? one : multi
    const { threadId, interruptId } = await waiting(agent, { transport })
    for (const route of ['run', 'suggest', 'connect']) {
      for (const [name, more] of ODD) {
        const refused = await run(agent, stack.tokens.alice, more(interruptId), { threadId, route, transport })
        t.same([refused.status, refused.code], [403, 'not-allowed'], `${transport} to ${upstream}, ${route}: ${name}`)
      }
    }
    for (const route of ['run', 'suggest']) {
      for (const [name, more] of IGNORED) {
        const { status } = await run(agent, stack.tokens.alice, more(interruptId), { threadId, route, transport })
        t.ok(status === 200 || status === 400, `${transport} to ${upstream}, ${route}: ${name}`)
        t.same(await interrupts(threadId), [interruptId], `the graph still waits: ${name}`)
      }
    }
  }
})

void test('a suggestion resumes the graph as a run does, so it counts', { buffered: true }, async (t) => {
  const { threadId } = await waiting(gate.agent)
  await run(gate.agent, stack.tokens.alice, props({ resume: true }), { threadId, route: 'suggest' })
  t.same(await interrupts(threadId), [])
})

void test(
  'without the gateway, null and false in command.resume reach the server as a command',
  { buffered: true },
  async (t) => {
    for (const resume of [null, '', false]) {
      const { threadId, interruptId } = await waiting(bare)
      const { text } = await run(bare, stack.tokens.alice, props({ resume }), { threadId })
      // This server refuses an empty command. Another one may take it.
      t.match(text, /"RUN_ERROR","message":"Received empty Command input"/, JSON.stringify(resume))
      t.same(await interrupts(threadId), [interruptId])
    }
  },
)

void test('a connect resumes nothing, whatever answer it has', { buffered: true }, async (t) => {
  const { threadId, interruptId } = await waiting(gate.agent)
  const resume = [{ interruptId, status: 'resolved', payload: true }]
  const { status } = await run(
    gate.agent,
    stack.tokens.alice,
    { resume, ...props({ resume: true }) },
    { threadId, route: 'connect' },
  )
  t.equal(status, 200)
  t.same(await interrupts(threadId), [interruptId])
})

end()
