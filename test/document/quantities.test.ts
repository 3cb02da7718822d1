/** Durations and sizes carry their unit: a bare number would be read as another one than was meant. */
import { test } from 'tap'
import { sizeText } from '../../src/document/quantities.ts'
import { accepted, faultsIn } from '../../testing/support/configuration.ts'

const DURATIONS = [
  ['0s', 0],
  ['500ms', 500],
  ['30s', 30_000],
  ['10m', 600_000],
  ['2h', 7_200_000],
  ['596h', 2_145_600_000],
] as const

for (const [text, milliseconds] of DURATIONS) {
  void test(`${text} is a duration`, (t) => {
    t.equal(accepted({ 'streams.keepAlive': text }).config.streams.keepAlive, milliseconds)
    t.end()
  })
}

const SIZES = [
  ['0B', 0],
  ['512B', 512],
  ['64KiB', 65_536],
  ['64MiB', 67_108_864],
  ['1GiB', 1_073_741_824],
] as const

for (const [text, bytes] of SIZES) {
  void test(`${text} is a size`, (t) => {
    t.equal(accepted({ 'limits.bodiesInFlight': text }).config.limits.bodiesInFlight, bytes)
    t.end()
  })
}

for (const text of ['', '30', '1.5s', '-1s', '1 s', '30S', '1d', '10min', 's', '٣s', '1s2m']) {
  void test(`"${text}" is no duration`, (t) => {
    t.match(faultsIn({ 'streams.keepAlive': text }), [{ path: 'streams.keepAlive', message: 'is not a duration', hint: /30s/ }])
    t.end()
  })
}

for (const text of ['', '64', '64KB', '64kib', '1.5MiB', '-1B', '1 MiB', '64K', '1TiB']) {
  void test(`"${text}" is no size`, (t) => {
    t.match(faultsIn({ 'limits.body': text }), [{ path: 'limits.body', message: 'is not a size', hint: /64KiB/ }])
    t.end()
  })
}

void test('a bare number is no quantity', (t) => {
  t.match(faultsIn({ 'streams.keepAlive': 15, 'limits.body': 1024 }), [{ path: 'streams.keepAlive' }, { path: 'limits.body' }])
  t.end()
})

void test('a body that no text holds is refused', (t) => {
  const fault = { message: 'is too large', hint: /256MiB/ }
  t.match(faultsIn({ 'limits.body': '257MiB', 'limits.runBody': '1GiB' }), [
    { path: 'limits.body', ...fault },
    { path: 'limits.runBody', ...fault },
  ])
  t.equal(accepted({ 'limits.runBody': '256MiB' }).config.limits.runBody, 268_435_456)
  t.end()
})

void test('a duration that no timer holds is refused: it would be over at once', (t) => {
  t.match(faultsIn({ 'upstream.timeouts.headers': '597h' }), [{ path: 'upstream.timeouts.headers', message: 'is too long' }])
  t.end()
})

void test('a size is shown as it is written', (t) => {
  for (const [bytes, text] of [
    [0, '0B'],
    [1000, '1000B'],
    [2048, '2KiB'],
    [67_108_864, '64MiB'],
    [1024 ** 3, '1GiB'],
    [1024 ** 2 + 1024, '1025KiB'],
  ] as const)
    t.equal(sizeText(bytes), text)
  t.end()
})
