/** The benchmark of the event loop: its kept result is of all requests of the tests. */
import { test } from 'tap'
import { SHAPES } from '../../testing/event-loop/shapes.ts'
import { bench } from './command.ts'

void test('the kept result has each request', (t) => {
  const { status, stdout } = bench('event-loop', '--read')
  t.equal(status, 0)
  t.match(stdout, `Of ${SHAPES.length} requests: `)
  t.end()
})
