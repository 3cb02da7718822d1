/** The pictures of results. */
import { test } from 'tap'
import { barChart, type Bar } from '../../testing/bench/plot.ts'

const bar = (label: string, value: number, kind: Bar['kind'] = 'other'): Bar => ({ label, value, text: `${value} s`, kind })
const chartOf = (...bars: readonly Bar[]): string => barChart({ title: 'Times', groups: [{ title: 'all', bars }] })

/** The widths of the bars, in their order. */
const widthsIn = (svg: string): readonly number[] =>
  Array.from(svg.matchAll(/<rect class="(?:ours|reference|other)".* width="([\d.]+)"/g), ([, width]) => Number(width))

void test('bars are as long as their values, on one scale', (t) => {
  const [first = 0, second = 0, third = 0] = widthsIn(chartOf(bar('a', 4), bar('b', 2, 'reference'), bar('c', 1, 'ours')))
  t.same([second / first, third / first], [0.5, 0.25])
  t.end()
})

void test('a bar beyond five times the reference is broken, and no longer', (t) => {
  const svg = chartOf(bar('a', 500), bar('b', 5), bar('c', 1, 'reference'))
  const [first, second, third = 0] = widthsIn(svg)
  t.equal(first, second)
  t.equal(second, 5 * third)
  t.equal(svg.match(/class="break"/g)?.length, 1)
  t.match(svg, '>500 s</text>', 'its value is there')
  t.end()
})

void test('where nothing is compared there is no mark, and no bar is broken', (t) => {
  const svg = chartOf(bar('a', 500), bar('b', 1))
  t.notMatch(svg, /class="(mark|break)"/)
  t.match(chartOf(bar('a', 2), bar('b', 1, 'reference')), 'class="mark"')
  t.end()
})

void test('a label is text, whatever it is', (t) => {
  t.match(chartOf(bar('<b> & c', 1)), '>&lt;b> &amp; c</text>')
  t.end()
})
