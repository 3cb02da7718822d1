/** Limits over all workers: the primary counts, and workers ask it. */
import type { OpenLimiter } from '../../limits/open.ts'
import type { Limiter } from '../../limits/port.ts'
import type { Call } from './rpc.ts'
import type { PrimaryHandlers } from './messages.ts'

export function borrowedLimiter(call: Call<PrimaryHandlers>): OpenLimiter {
  return {
    take: (name, who, rate) => call('take', { name, who, rate }),
    async open(who, most) {
      const opened = await call('open', { who, most })
      if (typeof opened !== 'number') return opened
      let isOpen = true
      return () => {
        // If the primary is gone, nothing has to be given back.
        if (isOpen) call('close', opened).catch(() => {})
        isOpen = false
      }
    },
    reserve: (uses) => call('reserve', uses),
    async settle(id, tokens, end) {
      // If the primary is gone, nothing is counted any more.
      await call('settle', { id, tokens, end }).catch(() => {})
    },
    // Only the primary has the admin API.
    spending: async () => [],
    stop() {},
  }
}

export interface Lent extends Pick<PrimaryHandlers, 'take' | 'open' | 'close' | 'reserve' | 'settle'> {
  readonly takeBack: () => void
}

export function lend(limiter: Limiter): Lent {
  const streams = new Map<number, () => void>()
  const reservations = new Set<string>()
  let last = 0
  let gone = false
  return {
    take: ({ name, who, rate }) => limiter.take(name, who, rate),
    async open({ who, most }) {
      const opened = await limiter.open(who, most)
      if (typeof opened !== 'function') return opened
      if (gone) opened()
      else streams.set(++last, opened)
      return last
    },
    close(stream) {
      streams.get(stream)?.()
      streams.delete(stream)
    },
    async reserve(uses) {
      const reserved = await limiter.reserve(uses)
      if ('name' in reserved) return reserved
      if (gone) await limiter.settle(reserved.id, 0, 'seen')
      else reservations.add(reserved.id)
      return reserved
    },
    async settle({ id, tokens, end }) {
      reservations.delete(id)
      await limiter.settle(id, tokens, end)
    },
    takeBack() {
      gone = true
      // The worker saw no end of these runs.
      for (const id of reservations) void limiter.settle(id, 0, 'unseen')
      reservations.clear()
      for (const close of streams.values()) close()
      streams.clear()
    },
  }
}
