/** The room for new objects: who starts in a small container is told, and the image and the documents say the same. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ENOUGH_ROOM, roomWarning } from '../../src/gateway/memory-budgets.ts'
import { ROOT } from '../docs/markdown.ts'

const MIB = 2 ** 20

void test('where Node leaves too little it says what to do', (t) => {
  for (const constrained of [128 * MIB, 512 * MIB]) {
    t.match(roomWarning({ constrained, options: ['--enable-source-maps'] }), /set NODE_OPTIONS=--max-semi-space-size=16$/)
  }
  for (const constrained of [undefined, 0, 513 * MIB, 2 ** 63]) t.equal(roomWarning({ constrained, options: [] }), null)
  for (const option of [ENOUGH_ROOM, '--max_semi_space_size=4', '--inspect --max-semi-space-size=32']) {
    t.equal(roomWarning({ constrained: 256 * MIB, options: [option] }), null, option)
  }
  t.end()
})

void test('the image and the documents set it', (t) => {
  const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
  t.match(read('Dockerfile'), new RegExp(`NODE_OPTIONS=${ENOUGH_ROOM}\\b`))
  t.match(read('docs/how-to/deploy/container.md'), `NODE_OPTIONS=${ENOUGH_ROOM}`)
  t.end()
})
