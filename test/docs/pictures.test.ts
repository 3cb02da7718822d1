/** The pictures of the README show what the demo does today. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { escaped } from '../../testing/bench/plot.ts'
import { badges, demoPictures } from '../../testing/pictures/pictures.ts'
import { exchangesOf, linesOf, recordDemo, textOf } from '../../testing/pictures/recording.ts'
import { ROOT } from './markdown.ts'

const file = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

void test('a recording of the demo is as the pictures show it', async (t) => {
  const output = await recordDemo()
  const exchanges = exchangesOf(output)
  t.match(output, `All ${exchanges.length} exchanges had the expected result.`)
  for (const name of ['README.md', 'docs/tutorials/run-the-demo.md']) {
    const counts = Array.from(file(name).matchAll(/(\d+) exchanges/g), ([, count]) => Number(count))
    t.ok(counts.length > 0 && counts.every((count) => count === exchanges.length), `${name}: ${exchanges.length} exchanges`)
  }
  const demo = file('docs/images/demo.svg')
  const shown = demo.replaceAll(/<[^>]*>/g, '')
  for (const { who, method, path, status, says } of exchanges)
    for (const part of [who, method, path, String(status), says])
      t.ok(shown.includes(escaped(part)), `${method} ${path}: ${part}`)
  for (const [name, text] of demoPictures(output)) t.equal(file(name), text, `${name}: npm run demo:record`)
})

void test('the badges are those of package.json and of the runtimes that are tested', (t) => {
  for (const [name, text] of badges()) t.equal(file(name), text, `${name}: npm run demo:record`)
  t.end()
})

void test('styles of a terminal are read, and exchanges are found', (t) => {
  const output = '\x1b[32m✓\x1b[39m bob     GET  /threads    \x1b[33m403\x1b[39m  Bob <cannot>\n     Echo: Hello\n'
  t.same(
    linesOf(output)[0]?.map(({ style }) => style),
    ['green', 'plain', 'yellow', 'plain'],
  )
  t.equal(textOf(linesOf(output)[1] ?? []), '     Echo: Hello')
  t.same(exchangesOf(output.replaceAll(/\x1b\[\d+m/g, '')), exchangesOf(output))
  t.same(exchangesOf(output), [{ who: 'bob', method: 'GET', path: '/threads', status: 403, says: 'Bob <cannot>' }])
  t.throws(() => demoPictures(output), /does not show/)
  t.end()
})
