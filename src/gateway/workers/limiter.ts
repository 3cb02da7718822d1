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
    stop() {},
  }
}

export interface Lent extends Pick<PrimaryHandlers, 'take' | 'open' | 'close'> {
  readonly takeBack: () => void
}

export function lend(limiter: Limiter): Lent {
  const streams = new Map<number, () => void>()
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
    takeBack() {
      gone = true
      for (const close of streams.values()) close()
      streams.clear()
    },
  }
}
