/** Answers to interrupts over a real gateway: who may give them, what the audit says, and where their content must not be. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import type { AuditLine } from '../../src/audit/line.ts'
import { BASE, codeIn } from '../security/thread-routes.ts'
import { requireDocumented } from '../../testing/support/admin-document.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { gated, type GatedOptions, type GatedUpstream } from '../../testing/support/gated.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { MULTI_ROUTE, type Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { ruled } from '../../testing/support/policies.ts'
import { head, sendRaw } from '../../testing/support/raw.ts'
import { OPERATOR } from '../../testing/support/sharing.ts'
import { events } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

const RUNS = ['agent/run', 'agent/connect', 'agent/suggest']
const CHAT = { name: 'chat', routes: RUNS, allow: ['signed-in'], threads: ['own', 'shared', 'unknown'] }
const GRANTS = { name: 'grants', routes: ['threads/grants'], allow: ['signed-in'], threads: ['own'] }
const APPROVERS = { ...CHAT, name: 'approvers', roles: ['approver'], threads: ['own', 'shared'], interrupts: 'pass' }
/** Users with the role may answer, and nobody else. */
const POLICY = ruled([APPROVERS, CHAT, GRANTS], { interrupts: 'refuse', sharing: true })

interface Scene extends GatedUpstream {
  readonly lead: string
  readonly run: (token: string, more?: object, threadId?: string, route?: string) => Promise<{ status: number; code: unknown }>
  /** Waits until there are so many. */
  readonly lines: (count: number) => Promise<readonly AuditLine[]>
}

async function scene(t: Test, pair: Pair, config: object = {}, options: GatedOptions = {}): Promise<Scene> {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'audit.jsonl')
  const { audit, ...more } = config as { audit?: object }
  const gate = await gated(t, events(), {
    pair,
    policy: POLICY,
    ...options,
    config: { audit: { to: 'file', file, ...audit }, ...more },
  })
  return {
    ...gate,
    lead: gate.signer.sign('lead', { role: 'approver' }),
    async run(token, body = {}, threadId = 't1', route = 'run') {
      const target = `${BASE}/agent/default/${route}`
      const answer = await gate.gateway.ask({ target, token, body: JSON.stringify(runInput(threadId, 'hello', { ...body })) })
      return { status: answer.status, code: codeIn(answer) }
    },
    async lines(count) {
      const read = (): readonly string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1)
      await until(() => read().length >= count)
      return read().map((line) => JSON.parse(line) as AuditLine)
    },
  }
}

const WORDS = 'the-words-of-the-answer'
const approval = { resume: [{ interruptId: 'i-1', status: 'resolved', payload: { approved: true, note: WORDS } }] }
const command = { forwardedProps: { command: { resume: { approved: false, note: WORDS } } } }

void testEachPair(
  'a role may answer, on own and shared threads; others are refused, and both are in the audit',
  async (t, pair) => {
    const one = await scene(t, pair)
    const { run, alice, bob, lead } = one
    t.match(await run(alice), { status: 200 })
    for (const user of ['corp:lead', 'corp:bob']) {
      const grant = { token: alice, transport: 'multi-route', body: { user, right: 'write' } } as const
      t.match(await call(`${one.base}/threadwarden/threads/t1/grants`, grant), { status: 201 })
    }
    const before = one.upstream.beginnings()
    for (const route of ['run', 'connect', 'suggest']) {
      for (const body of [approval, command]) {
        t.match(await run(alice, body, 't1', route), { status: 403, code: 'not-allowed' }, `the owner: ${route}`)
        t.match(await run(bob, body, 't1', route), { status: 403, code: 'not-allowed' }, `with a grant alone: ${route}`)
      }
    }
    t.match(
      await run(one.signer.sign('eve', { role: 'approver' }), approval),
      { status: 403, code: 'not-owner' },
      'with the role alone',
    )
    t.equal(one.upstream.beginnings(), before, 'none of it reaches the upstream')
    t.match(await run(lead, approval), { status: 200 })
    t.match(one.upstream.requests.at(-1)?.json, approval, 'the answer is forwarded as it is')
    t.match(await run(lead, command), { status: 200 })
    t.match(await run(bob), { status: 200 }, 'a run without an answer passes')
    const lines = (await one.lines(19)).filter(({ interrupts }) => interrupts !== null)
    t.strictSame(
      lines.map(({ principal, decision, reason, rule, interrupts, thread }) => [
        principal?.id,
        decision,
        reason,
        rule?.name,
        interrupts,
        thread,
      ]),
      [
        ...RUNS.flatMap(() =>
          [[{ id: 'i-1', answer: 'approved' }], [{ id: null, answer: 'refused' }]].flatMap((answers) =>
            ['corp:alice', 'corp:bob'].map((id) => [id, 'refused', 'interrupt-answer-not-allowed', 'chat', answers, 't1']),
          ),
        ),
        ['corp:eve', 'refused', 'thread-foreign', undefined, [{ id: 'i-1', answer: 'approved' }], 't1'],
        ['corp:lead', 'permitted', 'permitted', 'approvers', [{ id: 'i-1', answer: 'approved' }], 't1'],
        ['corp:lead', 'permitted', 'permitted', 'approvers', [{ id: null, answer: 'refused' }], 't1'],
      ],
    )
    const { text } = await call(`${one.gateway.healthUrl}/metrics`)
    for (const figure of [
      'approved",decision="permitted"} 1',
      'refused",decision="permitted"} 1',
      'approved",decision="refused"} 7',
    ]) {
      t.ok(text.includes(`threadwarden_interrupt_answers_total{answer="${figure}`), figure)
    }
    t.notOk(text.includes('i-1'), 'no id is a label')
  },
)

void test('what another limit refuses after the body was read says what it would have answered', async (t) => {
  const one = await scene(t, MULTI_ROUTE, { limits: { runs: '2/h' } })
  for (const status of [200, 200, 200, 200]) t.match(await one.run(one.lead, {}, 't1'), { status })
  t.match(await one.run(one.lead, approval, 't1'), { status: 429 })
  t.match((await one.lines(5)).at(-1), { reason: 'runs-limited', interrupts: [{ id: 'i-1', answer: 'approved' }] })
})

void test('content is in the audit only if the configuration says so, and nowhere else in any case', async (t) => {
  for (const interruptContent of [false, true]) {
    const audit = { interruptContent }
    const one = await scene(t, MULTI_ROUTE, { audit, log: { level: 'trace' }, admin: { port: 0, credential: OPERATOR } })
    await one.run(one.lead, {})
    for (const body of [approval, command]) t.match(await one.run(one.lead, body), { status: 200 })
    t.match(await one.run(one.alice, approval), { status: 403 })
    const lines = await one.lines(4)
    t.equal(JSON.stringify(lines).includes(WORDS), interruptContent)
    t.strictSame(lines[1]?.interrupts, [
      { id: 'i-1', answer: 'approved', ...(interruptContent ? { content: `{"approved":true,"note":"${WORDS}"}` } : {}) },
    ])
    const recent = await call(`${one.gateway.adminUrl}/decisions`, { token: OPERATOR })
    requireDocumented('GET', '/decisions', recent)
    t.ok(recent.text.includes('"interrupts":[{"id":"i-1","answer":"approved"}]'))
    t.notOk(recent.text.includes(WORDS), 'the admin API has no content')
    const { text } = await call(`${one.gateway.healthUrl}/metrics`)
    for (const [where, said] of Object.entries({ log: JSON.stringify(one.gateway.lines), metrics: text })) {
      t.notOk(said.includes(WORDS), where)
      t.notOk(said.includes('i-1'), `${where}: and no id`)
    }
  }
})

const ENCODINGS: Readonly<Record<string, (body: string) => string>> = {
  'in pieces': (body) =>
    [...(body.match(/.{1,7}/gs) ?? [])].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('') + '0\r\n\r\n',
  'with escapes': (body) => chunk(body.replace('"resume"', '"\\u0072esume"').replace('"command"', '"\\u0063ommand"')),
  'with the key last': (body) => chunk(body),
}

function chunk(body: string): string {
  return `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`
}

void test('on a raw socket no way of writing the body gets an answer through', async (t) => {
  const one = await scene(t, MULTI_ROUTE)
  t.match(await one.run(one.alice), { status: 200 })
  const send = (target: string, token: string, bytes: string): Promise<string> => {
    const fields = [
      'Host: a',
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
      'Connection: close',
    ]
    return sendRaw(one.gateway.url, head(`POST ${target} HTTP/1.1`, ...fields) + bytes)
  }
  const before = one.upstream.beginnings()
  for (const [how, write] of Object.entries(ENCODINGS)) {
    for (const body of [approval, command]) {
      const run = runInput('t1', 'hello', { ...body })
      const answer = await send(`${BASE}/agent/default/run`, one.alice, write(JSON.stringify(run)))
      t.match(answer, /^HTTP\/1\.1 403 [^]*"not-allowed"/, how)
      const envelope = { method: 'agent/run', params: { agentId: 'default' }, body: run }
      t.match(
        await send(BASE, one.alice, write(JSON.stringify(envelope))),
        /^HTTP\/1\.1 403 [^]*"not-allowed"/,
        `${how}, by envelope`,
      )
    }
  }
  const whole = JSON.stringify(runInput('t1'))
  for (const twice of [
    '"resume":null,"resume":[{"interruptId":"i-1"}]',
    '"forwardedProps":{"command":{"resume":1,"resume":null}}',
  ]) {
    const answer = await send(
      `${BASE}/agent/default/run`,
      one.alice,
      chunk(`${whole.slice(0, -1).replace(/,"forwardedProps":\{\}/, '')},${twice}}`),
    )
    t.match(answer, /^HTTP\/1\.1 400 /, 'a key twice')
  }
  const large = JSON.stringify(runInput('t1', 'x'.repeat(600_000), approval))
  t.match(await send(`${BASE}/agent/default/run`, one.alice, chunk(large)), /^HTTP\/1\.1 403 /, 'a body that is read in steps')
  const many = { resume: Array.from({ length: 101 }, () => approval.resume[0]) }
  t.match(await send(`${BASE}/agent/default/run`, one.lead, chunk(JSON.stringify(runInput('t1', 'a', many)))), /^HTTP\/1\.1 413 /)
  t.equal(one.upstream.beginnings(), before, 'none of it reaches the upstream')
})

void test('a property that the policy passes whole is no way round', async (t) => {
  const open = ruled(
    [
      {
        ...CHAT,
        forwardedProps: [
          { name: 'command', unsafe: true },
          { name: 'Command', unsafe: true },
        ],
      },
    ],
    { interrupts: 'refuse' },
  )
  const one = await scene(t, MULTI_ROUTE, {}, { policy: open })
  t.match(await one.run(one.alice), { status: 200 })
  const before = one.upstream.beginnings()
  for (const forwardedProps of [
    { command: { resume: null } },
    { command: [{ resume: true }] },
    { command: '{"resume":true}' },
    { Command: { resume: true } },
    { Command: { Resume: true } },
  ]) {
    t.match(await one.run(one.alice, { forwardedProps }), { status: 403 }, JSON.stringify(forwardedProps))
  }
  t.equal(one.upstream.beginnings(), before)
  t.match(await one.run(one.alice, { forwardedProps: { command: { goto: 'a' } } }), { status: 200 }, 'another command passes')
})
