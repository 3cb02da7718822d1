/** Progress: a bar where there is a terminal, elsewhere a line now and then, and nothing where somebody wants quiet. */
import { PassThrough } from 'node:stream'
import { test } from 'tap'
import { makeProgress } from '../../src/cli/with-progress.ts'

/** A stream and what was written to it. */
function startStream(isTTY: boolean) {
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 100 })
  let text = ''
  stream.setEncoding('utf8').on('data', (piece: string) => void (text += piece))
  const written = async (): Promise<string> => {
    await new Promise(setImmediate)
    return text
  }
  return { stream, written }
}

void test('on a terminal there is a bar with how much is done, of how much, and it is taken away at the end', async (t) => {
  const { stream, written } = startStream(true)
  const progress = makeProgress(stream)
  progress.begin('settled', 200)
  progress.at(50)
  progress.at(100)
  progress.end()
  const text = await written()
  t.match(text, /settled \[.+\] +50% 100\/200/)
  t.match(text, /\u001b\[0?K[^\n]*$|\u001b\[0?J[^\n]*$/, 'the line is cleared')
  t.notMatch(text, /\n/)
})

void test('where nobody knows how much there is, it counts', async (t) => {
  const { stream, written } = startStream(true)
  const progress = makeProgress(stream)
  progress.begin('threads listed', null)
  progress.at(7)
  progress.end()
  t.match(await written(), /threads listed 7/)
})

void test('without a terminal there is a line every ten seconds', async (t) => {
  const { stream, written } = startStream(false)
  let now = 0
  const progress = makeProgress(stream, { clock: () => now })
  progress.begin('settled', 200)
  for (const [at, done] of [
    [9_999, 10],
    [10_000, 20],
    [19_999, 30],
    [20_000, 40],
  ] as const) {
    now = at
    progress.at(done)
  }
  progress.begin('listed', null)
  now = 40_000
  progress.at(5)
  progress.end()
  now = 60_000
  progress.at(6)
  t.equal(await written(), 'settled 20 of 200\nsettled 40 of 200\nlisted 5\n')
})

void test('quiet is quiet, also on a terminal', async (t) => {
  const { stream, written } = startStream(true)
  const progress = makeProgress(stream, { quiet: true })
  progress.begin('settled', 200)
  progress.at(100)
  progress.end()
  t.equal(await written(), '')
})
