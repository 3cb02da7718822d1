/**
 * A thread that changes hands, or goes, while the upstream is asked: the table's answer says what was done, and only where it
 * was. The store and the upstream are played, to have it happen in between.
 */
import { Readable } from 'node:stream'
import { test } from 'tap'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, type Permit } from '../../src/core/decide/decide.ts'
import { assumedFacts, type RuntimeFacts } from '../../src/core/route/transport.ts'
import { authorized } from '../../testing/support/requests.ts'
import type { Payload } from '../../src/http/pipeline/stages.ts'
import { makeTableChange, type TableChangeParts } from '../../src/http/lists/table-changes.ts'
import type { ThreadRow } from '../../src/store/port/administration.ts'
import { StoreUnavailable } from '../../src/store/port/state.ts'
import { rulesOf } from '../../testing/support/rules-of.ts'
import { user } from '../../testing/support/callers.ts'

const ALICE = user('alice')
const RULES = rulesOf({ 'threads/update': [{ threads: ['own'] }], 'threads/archive': [{ threads: ['own'] }] })
const FACTS = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' } as const

const NAMING: Payload = { kind: 'json', bytes: [Buffer.from('{}')], name: 'Holidays', archived: undefined, claimed: null }
const CHANGES = {
  name: { route: ['PATCH', 'threads/t1'], payload: NAMING, by: 'rename' },
  archive: { route: ['POST', 'threads/t1/archive'], payload: { kind: 'none' }, by: 'archive' },
  end: { route: ['DELETE', 'threads/t1'], payload: { kind: 'none' }, by: 'endDeletion' },
} as const

const ROW: ThreadRow = {
  scope: '',
  threadId: 't1',
  owner: ALICE.id,
  agentId: 'default',
  name: 'Holidays',
  archived: true,
  createdAt: 1,
  lastUsedAt: 2,
  deletedAt: null,
  provisional: false,
}

type Store = TableChangeParts['store']

/** Makes a change that the upstream answers 422 to; gives what came of it, and whether the upstream's answer was let go. */
async function changing(
  what: keyof typeof CHANGES,
  playing: Partial<Store>,
  upstream: RuntimeFacts = assumedFacts('multi-route'),
) {
  const { route, payload } = CHANGES[what]
  const descriptor = classify(route[0], route[1].split('/'), new Map()) as RouteDescriptor
  const permit = decide(descriptor, ALICE, RULES, { ...FACTS, record: { owner: ALICE.id, deleted: false } }) as Permit
  const body = Readable.from(['{}'])
  const change = makeTableChange({
    store: {
      rename: async () => true,
      archive: async () => true,
      endDeletion: async () => true,
      thread: async () => ({ row: { ...ROW, deletedAt: what === 'end' ? 3 : null }, grants: [], runners: [] }),
      ...playing,
    },
    scope: '',
    forwarder: { ask: async () => ({ outcome: 'answered', status: 422, headers: {}, body }) as never, refusal: () => null },
    settlement: { settle: async () => {} },
    clock: () => 3,
  })
  const begun = { deletion: { token: 'one', isUndisturbed: true } }
  const came = await change(authorized(permit, { payload, upstream, begun }), 'always').catch((error: unknown) => error as Error)
  return { came, letGo: body.destroyed }
}

const seen = (row: ThreadRow | null): Pick<Store, 'thread'> => ({ thread: async () => ({ row, grants: [], runners: [] }) })

for (const what of ['name', 'archive', 'end'] as const) {
  void test(`${what}: what was done is answered, and the upstream’s answer let go`, async (t) => {
    const { came, letGo } = await changing(what, {})
    t.match(came, { outcome: 'rewritten' })
    t.ok(letGo)
  })

  void test(`${what}: a thread that is somebody else’s by now, or not there, keeps the upstream’s 422`, async (t) => {
    const deletedAt = what === 'end' ? 3 : null
    for (const row of [{ ...ROW, deletedAt, owner: 'corp:bob' }, { ...ROW, deletedAt, owner: '' }, null]) {
      const { came, letGo } = await changing(what, seen(row))
      t.match(came, { outcome: 'passthrough', answer: { status: 422 } }, JSON.stringify(row?.owner))
      t.notOk(letGo, 'it has yet to be passed on')
    }
    t.match((await changing(what, { thread: async () => null })).came, { outcome: 'passthrough' }, 'nobody ever heard of it')
  })

  void test(`${what}: a store that fails leaves nothing of the upstream’s answer hanging`, async (t) => {
    for (const failing of [CHANGES[what].by, 'thread'] as const) {
      const { came, letGo } = await changing(what, { [failing]: () => Promise.reject(new StoreUnavailable('away')) })
      t.type(came, StoreUnavailable, failing)
      t.ok(letGo)
    }
  })

  void test(`${what}: where there is nobody to ask, what could not be done is as if the route were not there`, async (t) => {
    const nobody = { ...assumedFacts('single-route'), resources: false }
    t.match((await changing(what, {}, nobody)).came, { outcome: 'rewritten' })
    t.match((await changing(what, seen(null), nobody)).came, { outcome: 'refused', code: 'not-found' })
  })
}

void test('a name or an archive that found no row is not said to be there', async (t) => {
  t.match((await changing('name', { rename: async () => false })).came, { outcome: 'passthrough' })
  t.match((await changing('archive', { archive: async () => false })).came, { outcome: 'passthrough' })
})

void test('an end that buried nothing, because a run revived the thread, is none', async (t) => {
  t.match((await changing('end', seen(ROW))).came, { outcome: 'passthrough' })
})
