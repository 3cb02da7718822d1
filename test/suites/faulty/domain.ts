import { test } from 'tap'
import { Domain } from '../domain.ts'

void test('tap makes the domains of the suites', (t) => {
  t.ok(t.hookDomain instanceof Domain)
  t.end()
})
