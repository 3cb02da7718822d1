/** The search itself: a checker that says yes to everything would make every race test green. */
import { test } from 'tap'
import type { RunOutcome } from '../../src/store/port/claims.ts'
import { findOrder, type Operation } from '../../testing/races/linearizable.ts'
import type { Answer, Call } from '../../testing/races/thread-calls.ts'
import { doCall, stateText, type ThreadState } from '../../testing/races/thread-model.ts'

type One = Operation<Call, Answer>

const MODEL = { first: null as ThreadState, do: doCall, text: stateText }

const claim = (user: string): Call => ({ op: 'claim', user, guest: false })
const settle = (user: string, outcome: RunOutcome): Call => ({ op: 'settle', user, registration: 0, outcome })
const NEW: Answer = { outcome: 'new', registration: 0 }
const FOREIGN: Answer = { outcome: 'foreign' }

/** A call from one moment to another with its answer; null for a call that nobody knows the end of. */
const did = (from: number, to: number | null, call: Call, answer: Answer = null): One => ({ from, to, call, answer })

function isRight(...history: One[]): boolean {
  return findOrder(history, MODEL).ok
}

void test('one of two that claim at once is the owner', async (t) => {
  t.ok(isRight(did(0, 9, claim('alice'), FOREIGN), did(1, 5, claim('bob'), NEW)), 'whoever began first')
  t.notOk(isRight(did(0, 9, claim('alice'), NEW), did(1, 5, claim('bob'), NEW)), 'never both')
  t.notOk(isRight(did(0, 9, claim('alice'), FOREIGN), did(1, 5, claim('bob'), FOREIGN)), 'nor nobody')
})

void test('what was answered holds for all that begins later', async (t) => {
  t.ok(isRight(did(0, 1, claim('alice'), NEW), did(2, 3, claim('bob'), FOREIGN)))
  t.notOk(isRight(did(0, 1, claim('alice'), FOREIGN), did(2, 3, claim('bob'), NEW)))
})

void test('a release is between the claim that it ends and the next one', async (t) => {
  const released = [did(0, 1, claim('alice'), NEW), did(2, 9, settle('alice', 'not-started'), true)]
  t.ok(isRight(...released, did(3, 4, claim('bob'), NEW)))
  t.ok(isRight(...released, did(3, 4, claim('bob'), FOREIGN)))
  t.notOk(isRight(...released, did(10, 11, claim('bob'), FOREIGN)))
  t.notOk(isRight(...released, did(3, 4, claim('bob'), NEW), did(5, 6, claim('carol'), NEW)))
})

void test('a call of which nobody knows the end was done at any time after it began, or never', async (t) => {
  const cut = did(5, null, claim('alice'))
  t.ok(isRight(cut, did(6, 7, claim('bob'), NEW)))
  t.ok(isRight(cut, did(6, 7, claim('bob'), FOREIGN)))
  t.ok(isRight(cut, did(6, 7, { op: 'thread' }, null), did(8, 9, claim('bob'), FOREIGN)), 'after a look that saw nothing of it')
  t.notOk(isRight(cut, did(0, 1, claim('bob'), FOREIGN)), 'not before')
  t.notOk(isRight(cut, did(6, 7, claim('bob'), FOREIGN), did(8, 9, claim('bob'), NEW)), 'and it is not undone')
})

void test('an order that fits at first and leads nowhere is given up for another', async (t) => {
  const both = [did(0, 9, claim('alice'), NEW), did(0, 9, settle('alice', 'not-started'), true)]
  t.ok(
    isRight(
      ...both,
      did(0, 9, claim('bob'), NEW),
      did(
        10,
        11,
        { op: 'accessTo', reader: { userId: 'x', groups: [] } },
        {
          owner: 'bob',
          deleted: false,
          provisional: true,
          granted: null,
        },
      ),
    ),
  )
})

void test('a step on all threads may leave one as it was, and does nothing else to it', async (t) => {
  const claimed = [did(0, 1, claim('alice'), NEW), did(2, 3, { op: 'transfer', from: 'alice', to: 'bob' })]
  t.ok(isRight(...claimed, did(4, 5, claim('carol'), FOREIGN), did(6, 7, claim('bob'), { outcome: 'own', registration: 1 })))
  t.ok(isRight(...claimed, did(4, 5, claim('bob'), FOREIGN)))
  t.notOk(isRight(...claimed, did(4, 5, claim('carol'), NEW)))
  t.notOk(isRight(...claimed, did(4, 5, claim('bob'), { outcome: 'own', registration: 0 })), 'in the life that it was claimed in')
})

void test('a run that may have started keeps a thread, and confirms it only where it was confirmed before', async (t) => {
  const claimed = [did(0, 1, claim('alice'), NEW), did(2, 3, settle('alice', 'stays'), false)]
  const again = (registration: number | null) => did(4, 5, claim('alice'), { outcome: 'own', registration })
  t.ok(isRight(...claimed, again(0), did(6, 7, settle('alice', 'not-started'), false), did(8, 9, claim('bob'), FOREIGN)))
  t.notOk(isRight(...claimed, again(null)))
  const bury = did(4, 5, { op: 'bury', user: 'alice' }, null)
  const revived = did(6, 7, claim('alice'), { outcome: 'new', registration: 1 })
  const late = did(8, 9, { op: 'settle', user: 'alice', registration: 1, outcome: 'stays' }, false)
  t.ok(isRight(...claimed, bury, revived, late, did(10, 11, claim('alice'), { outcome: 'own', registration: null })))
})

void test('it says how far it came, and what did not fit', async (t) => {
  const wrong = did(2, 3, claim('bob'), NEW)
  const verdict = findOrder([did(0, 1, claim('alice'), NEW), wrong, did(4, 5, claim('carol'), FOREIGN)], MODEL)
  t.match(verdict, { ok: false, order: [{ call: claim('alice') }], stuck: [wrong] })
  t.equal(verdict.order.length, 1)
  t.equal(verdict.stuck.length, 1)
})
