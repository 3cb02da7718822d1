/** Who a request is of, in each mode: a header that is no good token is 401 wherever credentials are read at all. */
import { test } from 'tap'
import { heard, rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { claims } from '../../testing/support/signing.ts'

const BAD = ['', 'garbage', 'Bearer garbage', 'Basic YTpi', 'Bearer ', 'bearer a.b.c']

void test('required: a good token or nothing', async (t) => {
  const authenticate = rsaGate(t)
  t.equal(await heard(authenticate, rsaToken(claims())), 'corp:alice')
  t.match(await authenticate(undefined), { code: 'credential-missing' })
  for (const header of BAD) t.match(await authenticate(header), { code: 'credential-invalid' }, header)
})

void test('optional: without a header the caller is anonymous, with a bad one it is refused', async (t) => {
  const authenticate = rsaGate(t, {}, { mode: 'optional' })
  t.match(await authenticate(undefined), {
    principal: { kind: 'anonymous', id: 'anonymous', standsForAll: false },
    credential: null,
  })
  t.equal(await heard(authenticate, rsaToken(claims())), 'corp:alice')
  for (const header of BAD) t.match(await authenticate(header), { code: 'credential-invalid' }, header)
  t.match(await heard(authenticate, rsaToken(claims({ exp: 1 }))), 'credential-expired')
})

void test('off: everybody is one user, and no header is read', async (t) => {
  const authenticate = rsaGate(t, {}, { mode: 'off' })
  const everybody = { kind: 'anonymous', id: 'anonymous', standsForAll: true }
  for (const header of [undefined, ...BAD, `Bearer ${rsaToken(claims())}`])
    t.match(await authenticate(header), { principal: everybody })
})
