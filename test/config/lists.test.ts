/** Where lists come from: a word of three, and one that has no effect while nothing is enforced is warned about. */
import { test } from 'tap'
import { accepted, faultsIn } from '../../testing/support/configuration.ts'

void test('lists come from the upstream, the table, or wherever there are some', (t) => {
  for (const lists of ['upstream', 'table', 'auto']) {
    t.equal(accepted({ 'ownership.lists': lists }).config.ownership.lists, lists)
  }
  for (const lists of ['', 'both', 'TABLE', null, true]) {
    t.match(faultsIn({ 'ownership.lists': lists }), [{ path: 'ownership.lists' }], String(lists))
  }
  t.end()
})

void test('lists of the table are warned about under observe, where callers get the upstream’s', (t) => {
  const warned = (lists: string, enforcement: string): boolean =>
    accepted({ 'ownership.lists': lists, enforcement }).warnings.some(({ path }) => path === 'ownership.lists')
  t.ok(warned('table', 'observe'))
  t.ok(warned('auto', 'observe'))
  t.notOk(warned('upstream', 'observe'))
  t.notOk(warned('table', 'enforce'))
  t.end()
})
