/** docs/how-to/connect/in-process.md: what it shows of a file is in that file, in one piece. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ROOT } from './markdown.ts'

const FOLDER = 'docs/how-to/connect'

/** A part is indented in the page, and in the file, as its surroundings are. */
function lines(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .join('\n')
    .trim()
}

void test('each block of code is a part of the file that it is from', (t) => {
  const text = readFileSync(join(ROOT, FOLDER, 'in-process.md'), 'utf8')
  const parts = [...text.matchAll(/From \[[^\]]+\]\(((?:[^()]|\([^()]*\))+)\):\n+ *```ts\n(.*?)```/gs)]
  t.equal(parts.length, [...text.matchAll(/^ *```ts/gm)].length)
  t.equal(parts.length, 5)
  for (const [, path = '', code = ''] of parts) {
    t.ok(lines(readFileSync(join(ROOT, FOLDER, path), 'utf8')).includes(lines(code)), path)
  }
  t.end()
})
