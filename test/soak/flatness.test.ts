/** Whether a soak says that memory is flat. */
import { test } from 'tap'
import { isFlat, trendOf, type Point } from '../../testing/soak/flatness.ts'
import { thinned } from '../../testing/soak/page.ts'

const HOUR = 3_600_000
const WARM_UP = HOUR / 6

const series = (value: (part: number) => number): readonly Point[] =>
  Array.from({ length: 361 }, (_, at) => ({ at: at * 10_000, value: value(at / 360) }))

const trend = (value: (part: number) => number) => trendOf(series(value), WARM_UP, HOUR)!

void test('what stays is flat, whatever it was in the warm-up', (t) => {
  t.match(
    trend(() => 100),
    { first: 100, last: 100, change: 0, slopePerHour: 0 },
  )
  t.match(
    trend((part) => (part < 1 / 6 ? 1 : 100)),
    { first: 100, last: 100, change: 0 },
  )
  t.ok(isFlat(trend((part) => 100 + 20 * Math.sin(1000 * part))), 'and what goes up and down')
  t.end()
})

void test('what grows or shrinks by more than a twentieth is not flat', (t) => {
  const by = (whole: number) => isFlat(trend((part) => 100 + whole * (part - 1 / 6)))
  t.same([by(7), by(8), by(-7), by(-8)], [true, false, true, false])
  t.end()
})

void test('the slope is a part of the mean, for an hour', (t) => {
  const { slopePerHour } = trend((part) => 100 + 10 * (part - 7 / 12))
  t.ok(Math.abs(slopePerHour - 0.1) < 1e-9)
  t.end()
})

void test('too few points say nothing', (t) => {
  t.equal(trendOf([], WARM_UP, HOUR), null)
  t.equal(trendOf(series(() => 1).slice(0, 200), WARM_UP, HOUR), null, 'none of the last sixth')
  t.end()
})

void test('of a long series means are kept', (t) => {
  const samples = Array.from({ length: 720 }, (_, at) => ({ at, rss: at % 2 === 0 ? 10 : 30, heap: 5 }))
  const kept = thinned(samples)
  t.equal(kept.length, 180)
  t.same(kept[0], { at: 1.5, rss: 20, heap: 5 })
  t.same(thinned(samples.slice(0, 200)), samples.slice(0, 200))
  t.same(thinned(samples.map((one) => ({ ...one, rss: null })))[0], { at: 1.5, rss: null, heap: 5 })
  t.end()
})
