/** Names that callers choose are said once each, and neither fill the log nor the memory. */
import { test } from 'tap'
import { onceByName } from '../../src/observe/log.ts'

void test('each name is said once, up to a number of them, and no more of it than its beginning', (t) => {
  const said: string[] = []
  const say = onceByName((name) => void said.push(name), 3)
  for (const name of ['a', 'b', 'a', `${'x'.repeat(100)}1`, `${'x'.repeat(100)}2`, 'c', 'a']) say(name)
  t.same(said, ['a', 'b', 'x'.repeat(100)])
  t.end()
})
