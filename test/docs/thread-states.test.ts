/** docs/explanation/ownership.md, "What each user sees": what the shipped policy decides for a thread in each state. */
import { test } from 'tap'
import { decide, type OwnerRecord } from '../../src/core/decide/decide.ts'
import { RUNTIME_ROUTES } from '../../testing/support/runtime-routes.ts'
import { user } from '../../testing/support/callers.ts'
import { compiled, descriptor, SHIPPED } from '../../testing/support/policies.ts'
import { page, rows, section } from './markdown.ts'

const { rules } = compiled(SHIPPED)
const [ALICE, BOB] = [user('alice'), user('bob')]

const STATES: Readonly<Record<string, OwnerRecord>> = {
  unowned: null,
  unconfirmed: { owner: ALICE.id, deleted: false, provisional: true },
  owned: { owner: ALICE.id, deleted: false },
  deleted: { owner: ALICE.id, deleted: true },
}

const ROUTES = RUNTIME_ROUTES.filter(({ thread, own }) => thread !== undefined && own !== true).map(({ id, method, path }) => ({
  id,
  asked: descriptor(method, path.join('/').replace(':agentId', 'default').replace(':threadId', 't-1')),
}))

/** Routes that a caller may use on a thread in this state; `connect, empty` is answered by the gateway. */
function open(record: OwnerRecord, caller = BOB): readonly string[] {
  const facts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce', record } as const
  return ROUTES.flatMap(({ id, asked }) => {
    const decision = decide(asked, caller, rules, facts)
    return decision.outcome === 'permitted' ? [decision.answerEmpty ? `${id}, empty` : id] : []
  })
}

void test('the page has each state', (t) => {
  const states = rows(section(page('docs/explanation/ownership.md'), 'What each user sees')).map(([state = '']) => state)
  t.same(
    states,
    Object.keys(STATES).map((state) => `**${state}**`),
  )
  t.end()
})

void test('what the owner may use', (t) => {
  t.same(open(STATES['unconfirmed']!, ALICE), ['agent/run', 'agent/connect', 'agent/suggest', 'agent/stop'])
  t.same(
    open(STATES['owned']!, ALICE),
    ROUTES.map(({ id }) => id),
  )
  t.same(open(STATES['deleted']!, ALICE), ['agent/run', 'agent/connect, empty', 'agent/suggest'])
  t.end()
})

void test('what other users may use', (t) => {
  t.same(open(null), ['agent/run', 'agent/connect, empty', 'agent/suggest'])
  for (const state of ['unconfirmed', 'owned', 'deleted']) t.same(open(STATES[state]!), [], state)
  t.end()
})

void test('a refusal is 403 not-owner, and 404 on events and state', (t) => {
  const facts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' } as const
  for (const [state, record] of Object.entries(STATES)) {
    for (const { id, asked } of ROUTES) {
      const decision = decide(asked, BOB, rules, { ...facts, record })
      if (decision.outcome !== 'refused') continue
      const isHidden = id === 'threads/events' || id === 'threads/state'
      t.equal(decision.code, isHidden ? 'not-found' : 'not-owner', `${state} ${id}`)
    }
  }
  t.end()
})
