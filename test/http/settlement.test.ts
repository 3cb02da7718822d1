/** What the upstream's answer to a permitted request means for the ownership table, by every route and status (docs/explanation/ownership.md). */
import { test } from 'tap'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, type OwnerRecord, type Permit } from '../../src/core/decide/decide.ts'
import type { Json } from '../../src/core/json/read.ts'
import { refuse } from '../../src/core/reasons.ts'
import { makeSettlement, type SettlementStore, threadKey } from '../../src/http/pipeline/settlement.ts'
import type { Payload } from '../../src/http/pipeline/stages.ts'
import { wholeBody } from '../../src/http/upstream/answer-body.ts'
import type { UpstreamAnswer, UpstreamFailure } from '../../src/http/upstream/upstream.ts'
import { makeLog } from '../../src/observe/log.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'
import { user } from '../../testing/support/callers.ts'
import { compiled, SHIPPED } from '../../testing/support/policies.ts'
import { portOf } from '../../testing/support/port.ts'

const ALICE = user('alice')

const OWN = { owner: 'corp:alice', deleted: false }
const KEY = { scope: 'one', threadId: 't1' }

/** A permit of alice's for a request; what the path does not say of the thread is in the body. */
function permit(method: string, path: string, record: OwnerRecord = OWN): Permit {
  const classified = classify(method, path.split('/'), new Map()) as RouteDescriptor
  const descriptor =
    classified.route.thread === 'body' ? { ...classified, ids: { ...classified.ids, threadId: 't1' } } : classified
  const facts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce', record } as const
  const decision = decide(descriptor, ALICE, compiled(SHIPPED).rules, facts)
  if (decision.outcome !== 'permitted') throw new Error(`${method} ${path} is not permitted`)
  return decision
}

const answered = (status: number, type = 'application/json'): UpstreamAnswer => ({
  outcome: 'answered',
  status,
  headers: { 'content-type': type },
  body: wholeBody(Buffer.alloc(0)),
})
const failed = (maybeSent: boolean): UpstreamFailure => ({
  outcome: 'failed',
  refusal: refuse('upstream-unreachable'),
  maybeSent,
  detail: 'X',
})

const NONE: Payload = { kind: 'none' }
const named = (name: string | number | null | undefined, archived?: Json): Payload => ({
  kind: 'json',
  bytes: [],
  name,
  archived,
  claimed: null,
})

/** Settles, and gives what the store and the metrics were told. */
async function settled(
  of: Permit,
  result: UpstreamAnswer | UpstreamFailure,
  payload = NONE,
  registration: number | null = 7,
  isUndisturbed = true,
) {
  const told: unknown[] = []
  const note =
    (name: string) =>
    async (...what: readonly unknown[]): Promise<boolean> => {
      told.push([name, ...what])
      return true
    }
  const store: SettlementStore = {
    settle: note('settle'),
    endDeletion: note('endDeletion'),
    rename: note('rename'),
    archive: note('archive'),
  }
  const metrics = { ...makeMetrics().requests, claimed: (...what: readonly unknown[]) => void told.push(['claimed', ...what]) }
  const claims = makeSettlement(store, 'one', () => 1234, metrics, makeLog('silent'))
  await claims.settle(of, { registration, deletion: { token: 'deletion', isUndisturbed } }, payload, result)
  return told
}

void test('a run is settled for its owner: a 2xx confirms it, and it stays or not started', async (t) => {
  const run = permit('POST', 'agent/a/run')
  for (const [result, outcome] of [
    [answered(199), 'stays'],
    [answered(200), 'confirmed'],
    [answered(299), 'confirmed'],
    [answered(200, 'text/html; charset=utf-8'), 'stays'],
    [answered(302), 'stays'],
    [answered(399), 'stays'],
    [answered(400), 'not-started'],
    [answered(408), 'stays'],
    [answered(499), 'stays'],
    [answered(498), 'not-started'],
    [answered(500), 'stays'],
    [failed(true), 'stays'],
    [failed(false), 'not-started'],
  ] as const) {
    t.same(await settled(run, result), [
      ['settle', KEY, 'corp:alice', 7, outcome],
      ['claimed', 'released'],
    ])
  }
  t.same(await settled(run, answered(400), NONE, null), [], 'what did not register is not settled')
})

void test('a guest’s run confirms nothing of the owner’s', async (t) => {
  const run = permit('POST', 'agent/a/run', { owner: 'corp:bob', deleted: false, provisional: true, granted: 'write' })
  for (const [result, outcome] of [
    [answered(200), 'stays'],
    [answered(404), 'not-started'],
    [failed(true), 'stays'],
  ] as const) {
    t.match(await settled(run, result), [['settle', KEY, 'corp:bob', 7, outcome]])
  }
})

void test('a deletion or a name is noted where a 2xx confirmed it, and nowhere else', async (t) => {
  const remove = permit('DELETE', 'threads/t1')
  const update = permit('PATCH', 'threads/t1')
  const page = answered(200, 'text/html')
  for (const result of [answered(199), answered(300), answered(404), answered(500), page, failed(true), failed(false)]) {
    t.same(await settled(remove, result), [])
    t.same(await settled(update, result, named('n')), [])
  }
  for (const status of [200, 204, 299]) {
    t.same(await settled(remove, answered(status)), [['endDeletion', KEY, 'corp:alice', 'deletion', 1234, 'deleted']])
    const executing = await settled(remove, answered(status), NONE, null, false)
    t.same(executing, [['endDeletion', KEY, 'corp:alice', 'deletion', 1234, 'unknown']], 'a run may write to it still')
    t.same(await settled(update, answered(status), named('n')), [['rename', KEY, 'corp:alice', 'n']])
  }
  for (const name of [null, 5]) {
    t.same(await settled(update, answered(200), named(name)), [['rename', KEY, 'corp:alice', null]], 'no text, no name')
  }
  t.same(await settled(update, answered(200), named(undefined)), [], 'a body that says nothing of the name changes none')
})

void test('what is archived, or is no more, is noted where a 2xx confirmed it', async (t) => {
  const archive = permit('POST', 'threads/t1/archive')
  const update = permit('PATCH', 'threads/t1')
  t.same(await settled(archive, answered(200)), [['archive', KEY, 'corp:alice', { archived: true }]])
  for (const archived of [true, false]) {
    const noted = [['archive', KEY, 'corp:alice', { archived }]]
    t.same(await settled(update, answered(200), named(undefined, archived)), noted)
    t.same(await settled(update, answered(200), named('n', archived)), [['rename', KEY, 'corp:alice', 'n'], ...noted])
  }
  for (const archived of [null, 'true', 1]) t.same(await settled(update, answered(200), named(undefined, archived)), [])
  for (const result of [answered(404), answered(500), failed(true)]) {
    t.same(await settled(archive, result), [])
    t.same(await settled(update, result, named(undefined, true)), [])
  }
})

void test('a name that a guest gives is noted on the row of its owner', async (t) => {
  const update = permit('PATCH', 'threads/t1', { owner: 'corp:bob', deleted: false, granted: 'write' })
  t.same(await settled(update, answered(200), named('n')), [['rename', KEY, 'corp:bob', 'n']])
})

void test('no other route changes a row, whatever its body says', async (t) => {
  for (const [method, path] of [
    ['POST', 'agent/a/connect'],
    ['POST', 'agent/a/suggest'],
    ['POST', 'agent/a/stop/t1'],
    ['GET', 'threads/t1/messages'],
    ['POST', 'annotate'],
    ['GET', 'info'],
  ] as const) {
    for (const result of [answered(200), answered(404), failed(false)]) {
      t.same(await settled(permit(method, path), result, named('n')), [], path)
    }
  }
})

void test('a store that fails after the upstream has answered is logged, and spoils no answer', async (t) => {
  const lines: Record<string, unknown>[] = []
  const log = makeLog('info', { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) })
  const store = portOf<SettlementStore>({ settle: () => Promise.reject(new Error('the disk is full')) })
  const claims = makeSettlement(store, '', () => 0, makeMetrics().requests, log)
  await claims.settle(permit('POST', 'agent/a/run'), { registration: 7, deletion: null }, NONE, answered(200))
  t.match(lines, [{ msg: 'the ownership table could not be updated', err: { message: 'the disk is full' } }])
})

void test('what is about no thread has no key', (t) => {
  t.equal(threadKey(permit('GET', 'info'), 'one'), null)
  t.same(threadKey(permit('GET', 'threads/t1/messages'), 'one'), KEY)
  t.end()
})
