/** The configurations that follow one another: one is in force, and what older ones have begun is held against it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { conditionOf } from './connection.ts'
import { makeGeneration, type Generation, type Origin, type Shared } from './generation.ts'
import type { AnswerOwner } from './http/open-answers.ts'
import type { Prepared } from './prepare.ts'
import { watchAnswers } from './answer-review.ts'

/** What they share, but for what they tell one another. */
export type Basis = Omit<Shared, 'overruled' | 'onStream' | 'epoch'>

/** All of them. */
export interface Generations {
  /** The one in force. */
  readonly current: () => Generation
  /**
   * Makes the next one, which is not in force yet, and gives new upstreams time to say what they are.
   * @throws Error for files that have changed since they were checked
   */
  readonly make: (prepared: Prepared) => Promise<Generation>
  /** Lets go of one that is not put in force. */
  readonly discard: (next: Generation) => Promise<void>
  /**
   * Puts it in force, and ends the streams that it does not allow.
   * @throws Error if the gateway stops meanwhile; the one before stays in force then
   */
  readonly put: (next: Generation) => Promise<void>
  /** Watches open streams no more. */
  readonly stop: () => void
}

/** How long a new upstream may take to say what it is, before requests come to it that then have to wait. */
const FIRST_ANSWER_MS = 5000

/** Streams that are asked about at once, and the pause before those are asked about again of which nobody knew. */
const AT_ONCE = 32
const RETRY_MS = 500

/** Begins with a first one, which is in force from now on. */
export function makeGenerations(prepared: Prepared, basis: Basis): Generations {
  const { streams, readiness, log } = basis
  const origins = new WeakMap<AnswerOwner, Origin>()
  const shared: Shared = {
    ...basis,
    overruled: (permit, origin) => (origin.generation === current ? null : current.overrules(permit, origin)),
    epoch: () => watch.epoch(),
    onStream: (owner, origin, epoch) => {
      origins.set(owner, origin)
      watch.opened(owner, epoch)
      // It was allowed by rules that were replaced while it was on its way.
      if (origin.generation !== current) void review([owner])
    },
  }

  const allows = async (owner: AnswerOwner): Promise<boolean | 'unknown'> => {
    const origin = origins.get(owner)
    if (owner.permit === undefined || origin === undefined) return true
    try {
      return (await current.overrules(owner.permit, origin)) === null
    } catch (error) {
      log.error(
        { err: error },
        'an open stream could not be held against the new rules: it will be, as soon as the store answers',
      )
      return 'unknown'
    }
  }

  /** Ends the streams that the rules in force don't allow. What can't be known now is asked again. */
  const review = async (owners: readonly AnswerOwner[]): Promise<void> => {
    const unknown: AnswerOwner[] = []
    for (let at = 0; at < owners.length; at += AT_ONCE) {
      const some = owners.slice(at, at + AT_ONCE)
      const verdicts = await Promise.all(some.map(allows))
      streams.endOf(new Set(some.filter((_owner, place) => verdicts[place] === false)))
      unknown.push(...some.filter((_owner, place) => verdicts[place] === 'unknown'))
    }
    if (unknown.length === 0 || basis.isShuttingDown()) return
    setTimeout(() => {
      const open = new Set(streams.owners())
      void review(unknown.filter((owner) => open.has(owner)))
    }, RETRY_MS).unref()
  }

  const discard = async (next: Generation): Promise<void> => {
    next.retire(current)
    const others = [...next.connections].filter(([scope, one]) => one !== current.connections.get(scope))
    await Promise.all(others.map(([, { upstream }]) => upstream.close()))
  }

  const watch = watchAnswers({
    news: basis.store,
    streams,
    allows: (permit, owner) => current.stillAllows(permit, origins.get(owner)?.scope ?? ''),
    log,
  })
  let current = makeGeneration(prepared, shared, null)
  current.takeOver()
  return {
    current: () => current,
    stop: watch.stop,
    discard,
    async make(prepared) {
      const next = makeGeneration(prepared, shared, current)
      const waiting = new AbortController()
      try {
        const late = sleep(FIRST_ANSWER_MS, undefined, { signal: waiting.signal }).catch(() => {})
        await Promise.race([next.begin(), late])
      } catch (error) {
        await discard(next)
        throw error
      } finally {
        waiting.abort()
      }
      return next
    },
    async put(next) {
      const before = current
      if (basis.isShuttingDown()) {
        await discard(next)
        throw new Error('the gateway is shutting down')
      }
      current = next
      before.retire(next)
      // What was known of the upstream before is nothing that the next one has to answer for.
      for (const [scope, connection] of before.connections) {
        if (next.connections.get(scope) !== connection) readiness.set(conditionOf('unknownThread', scope), null)
      }
      next.takeOver()
      await review(streams.owners())
    },
  }
}
