/** Who is an operator is named per issuer: another issuer may call anybody by any role. */
import { test } from 'tap'
import { told, user } from '../../testing/support/callers.ts'
import { compiled, faultsIn, ruled, SHIPPED } from '../../testing/support/policies.ts'

const CLEAR = [{ routes: ['threads/clear'], allow: ['operator'] }]
const policy = (operators: readonly object[]) => ruled(CLEAR, { operators })

void test('with one issuer its key may be left out', (t) => {
  const { rules } = compiled(policy([{ role: 'operator' }, { issuer: 'corp', permission: 'ops' }]))
  t.same(rules.operators, [
    { issuer: 'corp', role: 'operator' },
    { issuer: 'corp', permission: 'ops' },
  ])
  t.end()
})

void test('with two issuers it must be named', (t) => {
  t.match(faultsIn(policy([{ issuer: 'a', role: 'x' }, { role: 'x' }]), ['a', 'b']), [
    { path: 'operators.1', message: 'does not name its issuer', hint: 'add issuer: a or b' },
  ])
  t.match(faultsIn(SHIPPED, ['a', 'b']), [{ path: 'operators.0' }, { path: 'operators.1' }])
  t.end()
})

void test('an issuer that is not configured is refused', (t) => {
  t.match(faultsIn(policy([{ issuer: 'crop', role: 'x' }])), [
    { path: 'operators.0.issuer', message: 'there is no issuer crop', hint: 'configured: corp' },
  ])
  t.match(faultsIn(policy([{ issuer: 'crop', role: 'x' }]), ['corp', 'partner']), [{ hint: 'configured: corp, partner' }])
  t.end()
})

void test('a selector that names neither role nor permission is refused: it would be everybody', (t) => {
  const fault = { message: 'names neither a role nor a permission', hint: 'it would make every user an operator' }
  t.match(faultsIn(policy([{}])), [{ path: 'operators.0', ...fault }])
  t.match(faultsIn(policy([{ issuer: 'corp' }])), [{ path: 'operators.0', ...fault }])
  for (const key of ['role', 'permission', 'issuer']) {
    const empty = { path: `operators.0.${key}`, message: 'must not be empty' }
    t.match(faultsIn(policy([{ role: 'x', [key]: '' }])), [empty])
  }
  t.end()
})

void test('a role or permission counts for its own issuer only', (t) => {
  const { rules } = compiled(policy([{ issuer: 'a', role: 'operator' }]), ['a', 'b'])
  const clears = (issuer: string) => told({ rules }, user('eve', { issuer, roles: ['operator'] }), 'POST threads/clear')
  t.equal(clears('a'), 'yes')
  t.equal(clears('b'), 'not-allowed')
  t.end()
})

void test('role and permission in one selector are both asked for', (t) => {
  const both = compiled(policy([{ role: 'admin', permission: 'ops' }]))
  const clears = (roles: string[], permissions: string[]) => told(both, user('eve', { roles, permissions }), 'POST threads/clear')
  t.same([clears(['admin'], []), clears([], ['ops']), clears(['admin'], ['ops'])], ['not-allowed', 'not-allowed', 'yes'])
  t.end()
})

void test('without an issuer nobody is an operator', (t) => {
  t.same(compiled(SHIPPED, []).rules.operators, [])
  t.end()
})
