import { test } from 'tap'

void test('it is over before it throws', (t) => {
  setTimeout(() => {
    throw new Error('thrown later')
  }, 100)
  t.pass()
  t.end()
})
