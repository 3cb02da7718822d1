/** Open streams are held against what has changed of their threads: each is asked about when it may rest on what is over. */
import { test } from 'tap'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, type Permit } from '../../src/core/decide/decide.ts'
import type { AnswerOwner } from '../../src/http/upstream/open-answers.ts'
import { makeLog } from '../../src/observe/log.ts'
import type { ThreadKey } from '../../src/store/port/thread.ts'
import { makeAnswerRecheck, type AnswerRecheck } from '../../src/snapshot/stream-recheck.ts'
import { rulesOf } from '../../testing/support/rules-of.ts'
import { deferred, until } from '../../testing/support/until.ts'
import { user } from '../../testing/support/callers.ts'

const BOB = user('bob')
const RULES = rulesOf({ 'agent/connect': [{ threads: ['own', 'shared'] }] })
const FACTS = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' } as const

/** A stream of bob's on a thread that was shared with him. */
function streamOn(threadId: string): AnswerOwner {
  const route = classify('POST', ['agent', 'a', 'connect'], new Map()) as RouteDescriptor
  const record = { owner: 'corp:alice', deleted: false, granted: 'read' } as const
  const permit = decide({ ...route, ids: { agentId: 'a', threadId } }, BOB, RULES, { ...FACTS, record }) as Permit
  return { requestId: 'r-1', userId: BOB.id, credential: null, permit }
}

/** A watch over streams that a test opens, with news that it tells. */
interface Watched {
  readonly review: AnswerRecheck
  /** Opens a stream that was permitted at a moment; by default just now. */
  readonly open: (owner: AnswerOwner, mark?: number) => void
  readonly close: (owner: AnswerOwner) => void
  readonly tell: (key: ThreadKey | null) => void
  /** The threads that were asked about, in order. */
  readonly asked: readonly string[]
  /** The threads whose streams were ended. */
  readonly ended: readonly string[]
  /** How many listen to news. */
  readonly listeners: () => number
  readonly errors: () => number
}

/** @param allows what is known now of a thread: throws where the store does not answer */
function watched(allows: (threadId: string, times: number) => boolean | 'for-now' | Promise<boolean>): Watched {
  const streams = new Set<AnswerOwner>()
  const listeners = new Set<(key: ThreadKey | null) => void>()
  const asked: string[] = []
  const ended: string[] = []
  let errors = 0
  const review = makeAnswerRecheck({
    invalidations: {
      onInvalidation(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
    answers: {
      owners: () => [...streams],
      endOf(owners) {
        for (const owner of owners) if (streams.delete(owner)) ended.push(threadOf(owner.permit))
      },
    },
    async allows({ permit }) {
      const threadId = threadOf(permit)
      asked.push(threadId)
      return allows(threadId, asked.filter((one) => one === threadId).length)
    },
    log: makeLog('error', { write: () => void (errors += 1) }),
  })
  return {
    review,
    open(owner, mark = review.mark) {
      streams.add(owner)
      review.opened(owner, mark)
    },
    close: (owner) => void streams.delete(owner),
    tell: (key) => {
      for (const listener of listeners) listener(key)
    },
    asked,
    ended,
    listeners: () => listeners.size,
    errors: () => errors,
  }
}

function threadOf(permit: Permit | undefined): string {
  return permit?.descriptor.ids.threadId ?? 'none'
}

const news = (threadId: string): ThreadKey => ({ scope: '', threadId })

/** Time for everything that is begun at once. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

void test('news of a thread end the streams on it that are not allowed any more, and no others', async (t) => {
  const { open, tell, asked, ended } = watched((threadId) => threadId === 't-kept')
  for (const threadId of ['t-gone', 't-kept', 't-other']) open(streamOn(threadId))
  await turn()
  t.same(asked, [], 'nothing is asked without news')
  tell(news('t-gone'))
  tell(news('t-kept'))
  await until(() => asked.length === 2)
  await turn()
  t.same([asked, ended], [['t-gone', 't-kept'], ['t-gone']])
})

void test('where nobody knows which thread it was, every stream on one is asked about', async (t) => {
  const { open, tell, asked, ended } = watched(() => false)
  open(streamOn('t-1'))
  open(streamOn('t-2'))
  open({ requestId: 'r-2', userId: 'corp:bob', credential: null })
  tell(null)
  await until(() => ended.length === 2)
  t.same(asked, ['t-1', 't-2'])
})

void test('a stream that opens after news came is asked about: its request may be older than they are', async (t) => {
  const { review, open, tell, ended } = watched(() => false)
  const mark = review.mark
  // It was decided by what was so before, and is in no list of open streams yet.
  tell(news('t-1'))
  open(streamOn('t-1'), mark)
  await until(() => ended.length === 1)
  t.same(ended, ['t-1'])
})

void test('a stream whose request is younger than the news is not asked about', async (t) => {
  const { open, tell, asked } = watched(() => false)
  tell(news('t-1'))
  open(streamOn('t-1'))
  await turn()
  t.same(asked, [])
})

void test('what can’t be asked now is asked until it can: a store that fails keeps no stream open', async (t) => {
  const { open, tell, asked, ended, errors } = watched((threadId, times) => {
    if (times <= 2) throw new Error('the store is away')
    return threadId === 't-kept'
  })
  open(streamOn('t-gone'))
  open(streamOn('t-kept'))
  tell(null)
  await until(() => asked.length === 6)
  await turn()
  t.same(ended, ['t-gone'], 'and ends none that is allowed')
  t.equal(errors(), 4, 'each time it could not be asked was told')
})

void test('a stream that is over while the store fails is asked about no more', async (t) => {
  const { open, close, tell, asked, ended } = watched((_threadId, times) => {
    if (times === 1) throw new Error('the store is away')
    return false
  })
  const [left, stayed] = [streamOn('t-left'), streamOn('t-stayed')]
  open(left)
  open(stayed)
  tell(null)
  await turn()
  close(left)
  await until(() => ended.length === 1)
  t.same([asked.filter((one) => one === 't-left').length, ended], [1, ['t-stayed']])
})

void test('news that come while it is asked are asked about again', async (t) => {
  const first = deferred<boolean>()
  const { open, tell, asked, ended } = watched((_threadId, times) => (times === 1 ? first.promise : false))
  open(streamOn('t-1'))
  tell(news('t-1'))
  await turn()
  // It was read before this change, and is answered after it.
  tell(news('t-1'))
  first.resolve(true)
  await until(() => ended.length === 1)
  t.same(asked, ['t-1', 't-1'])
})

void test('of many streams so many are asked about at once as a store can bear, and none is forgotten', async (t) => {
  let now = 0
  let most = 0
  const { open, tell, ended } = watched(async () => {
    now += 1
    most = Math.max(most, now)
    await turn()
    now -= 1
    return false
  })
  for (let at = 0; at < 100; at += 1) open(streamOn(`t-${at}`))
  tell(null)
  await until(() => ended.length === 100)
  t.equal(most, 32)
})

void test('after the end nothing is listened to, and nothing asked', async (t) => {
  const { review, open, tell, asked, listeners } = watched(() => {
    throw new Error('the store is away')
  })
  open(streamOn('t-1'))
  tell(news('t-1'))
  await turn()
  review.stop()
  t.equal(listeners(), 0)
  await new Promise((resolve) => setTimeout(resolve, 700))
  t.same(asked, ['t-1'])
})

void test('what is allowed for now is asked about again and again, until it is not, or nothing changes it without news', async (t) => {
  const claimed = new Set<string>()
  const settled = new Set(['t-settled'])
  const { open, tell, asked, ended } = watched((threadId) => {
    if (claimed.has(threadId)) return false
    return settled.has(threadId) ? true : 'for-now'
  })
  for (const threadId of ['t-nobodys', 't-settled']) open(streamOn(threadId))
  tell(news('t-nobodys'))
  tell(news('t-settled'))
  await until(() => asked.filter((one) => one === 't-nobodys').length === 3)
  t.equal(asked.filter((one) => one === 't-settled').length, 1)
  claimed.add('t-nobodys')
  await until(() => ended.length === 1)
  t.same(ended, ['t-nobodys'])
})

void test('an answer that could not be checked again and again is asked about once each time', async (t) => {
  let broken = true
  const { open, tell, asked, errors } = watched(() => {
    if (broken) throw new Error('away')
    return 'for-now'
  })
  open(streamOn('t-1'))
  tell(news('t-1'))
  await until(() => asked.length === 4)
  t.equal(errors(), 4)
  broken = false
  await until(() => asked.length === 5)
  t.equal(errors(), 4)
})
