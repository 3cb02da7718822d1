/** What the metrics say of unconfirmed claims: as the store has them now, and as they were last seen while it fails. */
import { test } from 'tap'
import { watchClaims } from '../../src/gateway/operator-notices.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'
import type { UnconfirmedClaims } from '../../src/store/port/administration.ts'

void test('each look replaces the last one, and a failed one changes nothing', async (t) => {
  const metrics = makeMetrics()
  const figures = async (): Promise<readonly number[]> => {
    const { text } = await metrics.expose()
    const value = (name: string): number => Number(new RegExp(`^threadwarden_${name} (.+)$`, 'm').exec(text)?.[1])
    return [value('unconfirmed_claims'), Math.trunc(value('unconfirmed_claim_age_seconds'))]
  }
  t.same(await figures(), [0, 0], 'before the first look')
  const answers: readonly (() => Promise<UnconfirmedClaims>)[] = [
    () => Promise.resolve({ count: 2, oldest: Date.now() - 100_500 }),
    () => Promise.reject(new Error('the store is gone')),
    () => Promise.resolve({ count: 1, oldest: Date.now() + 60_000 }),
    () => Promise.resolve({ count: 0, oldest: null }),
  ]
  const seen: (readonly number[])[] = []
  let asked = 0
  await new Promise<void>((resolve) => {
    const unconfirmed = async (): Promise<UnconfirmedClaims> => {
      seen.push(await figures())
      const answer = answers[asked]
      asked += 1
      if (answer !== undefined) return answer()
      end()
      resolve()
      return { count: 0, oldest: null }
    }
    const end = watchClaims({ unconfirmed }, metrics.store, 1)
  })
  t.same(seen, [
    [0, 0],
    [2, 100],
    [2, 100],
    // A clock that is behind another gateway's makes no age below 0.
    [1, 0],
    [0, 0],
  ])
})
