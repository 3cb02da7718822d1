/** Refusals: what one is made of, and that nothing else is taken for one. The lists themselves are held to docs/reference/errors.md. */
import { test } from 'tap'
import { isRefusal, REASONS, refuse, type Reason } from '../../src/core/reasons.ts'

void test('a refusal tells the reason and its code', (t) => {
  for (const [reason, code] of Object.entries(REASONS))
    t.strictSame(refuse(reason as Reason), { outcome: 'refused', reason, code }, reason)
  t.end()
})

void test('a refusal may hide behind another code, and names the methods of a 405', (t) => {
  t.strictSame(refuse('thread-foreign', { code: 'not-found' }), {
    outcome: 'refused',
    reason: 'thread-foreign',
    code: 'not-found',
  })
  t.strictSame(refuse('method-not-allowed', { allow: ['GET'] }), {
    outcome: 'refused',
    reason: 'method-not-allowed',
    code: 'method-not-allowed',
    allow: ['GET'],
  })
  t.end()
})

void test('only a refusal is taken for one', (t) => {
  t.ok(isRefusal(refuse('internal')))
  for (const value of [
    undefined,
    null,
    5,
    'refused',
    [],
    {},
    { reason: 'internal' },
    { outcome: 'permitted' },
    { outcome: null },
  ])
    t.notOk(isRefusal(value), JSON.stringify(value))
  t.notOk(isRefusal(Object.assign(() => null, { outcome: 'refused' })), 'a function is no refusal')
  t.end()
})
