/** Callers that are made up have their claims where their issuer has them. */
import { test } from 'tap'
import { isRefusal } from '../../src/core/reasons.ts'
import { makeUser, NO_ATTRIBUTES, type Attributes } from '../../src/tools/simulate/made-up-user.ts'
import { accepted } from '../../testing/support/configuration.ts'

const { config } = accepted({
  'authentication.issuers.corp.claims': { id: '/user/id', role: '/realm_access/roles', permissions: '/scope~1s' },
})
const made = (attributes: Partial<Attributes>, subject = 'alice') =>
  makeUser('corp', subject, { ...NO_ATTRIBUTES, ...attributes }, config)

void test('id, roles and permissions are found by the pointers of the issuer', (t) => {
  t.match(made({ roles: ['staff'], permissions: ['finance'], claims: [['/org', 'acme']] }), {
    id: 'corp:alice',
    issuer: 'corp',
    roles: ['staff'],
    permissions: ['finance'],
    claims: {
      iss: 'https://login.example.com/',
      user: { id: 'alice' },
      realm_access: { roles: ['staff'] },
      'scope/s': ['finance'],
      org: 'acme',
    },
  })
  t.match(made({}), { roles: [], permissions: [] })
  t.end()
})

void test('a claim joins what stands at its place, or replaces it', (t) => {
  t.match(made({ roles: ['staff'], claims: [['/realm_access/roles', ['support', 'staff']]] }), { roles: ['staff', 'support'] })
  t.match(made({ claims: [['/user/id', 'bob']] }), { id: 'corp:bob' })
  t.match(
    made({
      claims: [
        ['/a', 1],
        ['/a/b', 2],
      ],
    }),
    { claims: { a: { b: 2 } } },
  )
  t.ok(isRefusal(made({ claims: [['/user/id', 7]] })), 'what is not a user id makes no user')
  t.end()
})

void test('no claim reaches a prototype', (t) => {
  const user = made({
    claims: [
      ['/__proto__/polluted', true],
      ['/__proto__', { role: 'x' }],
      ['/constructor/prototype/polluted', true],
    ],
  })
  t.notOk('polluted' in {})
  if (isRefusal(user)) throw new Error(user.reason)
  t.ok(Object.hasOwn(user.claims as object, '__proto__'))
  t.end()
})
