/**
 * Holds open streams against what has changed of their threads: a stream ends when the grant does that it rests on, when its
 * thread goes to somebody else, and when the thread's owner deletes it. What can't be asked now is asked until it can.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Permit } from './core/decide.ts'
import type { OpenAnswers, AnswerOwner } from './http/open-answers.ts'
import type { Logger } from './observe/log.ts'
import type { StandingNews } from './store/port.ts'

/** What it works with. */
export interface AnswerReviewParts {
  readonly news: StandingNews
  readonly streams: Pick<OpenAnswers, 'owners' | 'endOf'>
  /** False if what is known now does not allow it any more; rejects if that can't be known. */
  readonly allows: (permit: Permit, owner: AnswerOwner) => Promise<boolean>
  readonly log: Logger
}

/** The watch over open streams. */
export interface AnswerReview {
  /** Counts the news. A request that began at another count may have been decided by what was so before. */
  readonly epoch: () => number
  /** Told of each stream that opens, with the count at the head of its request. */
  readonly opened: (owner: AnswerOwner, epoch: number) => void
  readonly stop: () => void
}

/** Streams that are asked about at once: a store has only so many connections. */
const AT_ONCE = 32
const RETRY_MS = 500

/** Starts the watch. */
export function watchAnswers({ news, streams, allows, log }: AnswerReviewParts): AnswerReview {
  let epoch = 0
  let stopped = false
  const due = new Set<AnswerOwner>()
  let working = false

  const ask = async (owner: AnswerOwner): Promise<'ends' | 'goes-on' | 'unknown'> => {
    try {
      return owner.permit === undefined || (await allows(owner.permit, owner)) ? 'goes-on' : 'ends'
    } catch (error) {
      log.error({ err: error }, 'an open stream could not be held against the ownership table: it will be, as soon as it answers')
      return 'unknown'
    }
  }

  const work = async (): Promise<void> => {
    if (working) return
    working = true
    while (due.size > 0 && !stopped) {
      const some = [...due].slice(0, AT_ONCE)
      // What changes from here on is asked again.
      for (const owner of some) due.delete(owner)
      const verdicts = await Promise.all(some.map(ask))
      streams.endOf(new Set(some.filter((_owner, at) => verdicts[at] === 'ends')))
      const unknown = some.filter((_owner, at) => verdicts[at] === 'unknown')
      if (unknown.length === 0) continue
      await sleep(RETRY_MS, undefined, { ref: false })
      const open = new Set(streams.owners())
      for (const owner of unknown) if (open.has(owner)) due.add(owner)
    }
    working = false
  }

  const end = news.onStanding((key) => {
    epoch += 1
    for (const owner of streams.owners()) {
      const threadId = owner.permit?.descriptor.ids.threadId
      if (threadId !== undefined && (key === null || key.threadId === threadId)) due.add(owner)
    }
    void work()
  })
  return {
    epoch: () => epoch,
    opened(owner, at) {
      if (at === epoch) return
      due.add(owner)
      void work()
    },
    stop() {
      stopped = true
      end()
    },
  }
}
