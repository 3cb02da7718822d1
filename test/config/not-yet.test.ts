/**
 * Keys that are announced and not there yet take their inert value only. Any other is refused by name: an operator who
 * wrote it down would believe it.
 */
import { test } from 'tap'
import { accepted, faultsIn } from './configuration.ts'

const ANNOUNCED = [
  ['ownership.lists', 'table'],
  ['ownership.lists', 'auto'],
] as const

for (const [path, value] of ANNOUNCED) {
  void test(`${path}: ${JSON.stringify(value)} is refused by name`, (t) => {
    t.match(faultsIn({ [path]: value }), [{ path, message: 'is not supported by this version yet', hint: /./ }])
    t.end()
  })
}

for (const store of ['postgres://user@host/db', 'postgresql://host/db']) {
  void test(`the store ${store} is refused by name`, (t) => {
    const fault = { path: 'ownership.store', message: 'PostgreSQL is not supported by this version yet', hint: /sqlite:/ }
    t.match(faultsIn({ 'ownership.store': store }), [fault])
    t.end()
  })
}

void test('a store of no kind is refused', (t) => {
  for (const store of ['', 'sqlite:', 'mysql://host/db', './ownership.db', 'SQLITE:./a.db', ' sqlite:a']) {
    t.match(faultsIn({ 'ownership.store': store }).slice(0, 1), [{ path: 'ownership.store', message: 'is not a store' }])
  }
  t.end()
})

void test('the inert value is accepted', (t) => {
  t.equal(accepted({ 'ownership.lists': 'upstream' }).config.ownership.lists, 'upstream')
  t.end()
})
