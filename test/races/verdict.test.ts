/** The verdict itself: one that finds nothing would make every crash test green. */
import { test } from 'tap'
import type { Told } from '../../testing/races/crowd.ts'
import type { Arrival, Fate } from '../../testing/races/ledger.ts'
import { judge } from '../../testing/races/verdict.ts'

/** A request of somebody's that reached the upstream at one moment and was answered at another. */
const came = (user: string, fate: Fate | null, at: number, ended: number | null): Arrival => ({
  mark: `mark-${at}`,
  user,
  fate,
  at,
  ended,
})

/** What somebody was told of it, who had sent it at a moment. */
const heard = (user: string, act: Told['act'], from: number, status: number, code?: string, mark = ''): Told => ({
  ...{ mark, thread: 't', user, act, from, to: from + 1, status, code },
})

void test('a thread is whose run may have been started first', async (t) => {
  const refused = came('bob', 'refused', 1, 2)
  for (const fate of ['started', 'broken'] as const) {
    const verdict = judge([refused, came('alice', fate, 3, 4)], [heard('alice', 'started', 0, 200)], 'alice')
    t.match(verdict, { owner: 'alice', attempted: 1, confirmed: 1, lost: [], doubled: [] })
  }
  t.match(judge([refused], [], null), { owner: null, lost: [], doubled: [] })
})

void test('two users have it where the second run came before the first was refused, or after it was not', async (t) => {
  const later = came('bob', 'refused', 5, 6)
  t.equal(judge([came('alice', 'refused', 1, 4), later], [], null).doubled.length, 0)
  t.equal(judge([came('alice', 'refused', 1, 7), later], [], null).doubled.length, 1)
  t.equal(judge([came('alice', 'refused', 1, null), later], [], null).doubled.length, 1)
  t.equal(judge([came('alice', 'started', 1, 2), later], [], 'alice').doubled.length, 1)
  t.equal(judge([came('alice', 'broken', 1, 2), later], [], 'alice').doubled.length, 1)
})

void test('a stranger has it whose request was sent after the owner’s run came, and arrives', async (t) => {
  const arrivals = [came('alice', 'started', 2, 3), came('bob', null, 9, 9)]
  t.equal(judge(arrivals, [heard('bob', 'read', 4, 200, undefined, 'mark-9')], 'alice').doubled.length, 1)
  t.equal(judge(arrivals, [heard('bob', 'read', 1, 200, undefined, 'mark-9')], 'alice').doubled.length, 0)
})

void test('it is lost where the row is another’s or gone, and where the owner may not run on it', async (t) => {
  const arrivals = [came('alice', 'started', 2, 3)]
  t.equal(judge(arrivals, [], 'bob').lost.length, 1)
  t.equal(judge(arrivals, [], null).lost.length, 1)
  t.equal(judge(arrivals, [heard('alice', 'started', 4, 403, 'not-owner')], 'alice').lost.length, 1)
  t.equal(judge(arrivals, [heard('alice', 'started', 1, 403, 'not-owner')], 'alice').lost.length, 0, 'before it was hers')
  t.equal(judge(arrivals, [heard('alice', 'read', 4, 403, 'not-owner')], 'alice').lost.length, 0, 'deleted by her')
  t.equal(judge(arrivals, [heard('alice', 'started', 4, 503, 'store-unavailable')], 'alice').lost.length, 0)
})
