/** Grants by themselves: whom they are for, the widest of several, and what they are enough for. */
import { test } from 'tap'
import { ANONYMOUS, EVERYBODY, userFromClaims, type User } from '../../src/core/decide/principal.ts'
import { readerOf } from '../../src/http/pipeline/authorization.ts'
import { isGranteeId, rightIn, suffices, type Grant } from '../../src/core/decide/sharing.ts'
import { user } from '../../testing/support/callers.ts'

const to = (kind: Grant['kind'], id: string, right: Grant['right']): Grant => ({ kind, id, right })
const alice = { userId: 'corp:alice', groups: ['corp:staff', 'corp:leads'] }

void test('a reader is a user with the groups of the token; nobody anonymous has any', (t) => {
  t.strictSame(readerOf(user('alice', { groups: ['corp:staff'] })), { userId: 'corp:alice', groups: ['corp:staff'] })
  for (const nobody of [ANONYMOUS, EVERYBODY]) t.strictSame(readerOf(nobody), { userId: 'anonymous', groups: [] })
  t.end()
})

void test('a grant is for the user of that id, or for all whose token names the group', (t) => {
  t.equal(rightIn([to('user', 'corp:alice', 'read')], alice), 'read')
  t.equal(rightIn([to('group', 'corp:leads', 'write')], alice), 'write')
  for (const other of [
    to('user', 'corp:bob', 'write'),
    to('user', 'partner:alice', 'write'),
    to('user', 'corp:Alice', 'write'),
    to('user', 'corp:staff', 'write'),
    to('group', 'corp:alice', 'write'),
    to('group', 'partner:staff', 'write'),
    to('group', 'corp:staf', 'write'),
  ]) {
    t.equal(rightIn([other], alice), null, JSON.stringify(other))
  }
  t.equal(rightIn([], alice), null)
  t.end()
})

void test('of several grants the widest counts, in any order', (t) => {
  const grants = [to('user', 'corp:alice', 'read'), to('group', 'corp:staff', 'write'), to('user', 'corp:bob', 'write')]
  t.equal(rightIn(grants, alice), 'write')
  t.equal(rightIn(grants.toReversed(), alice), 'write')
  t.equal(rightIn(grants, { ...alice, groups: [] }), 'read', 'what others were granted does not count')
  t.equal(rightIn([to('group', 'corp:staff', 'read'), to('group', 'corp:leads', 'read')], alice), 'read')
  t.end()
})

void test('the same name of two issuers is two groups', (t) => {
  const pointers = { id: '/sub', name: '/name', role: '/role', permissions: '/permissions', groups: '/groups' }
  const of = (issuer: string) => readerOf(userFromClaims(issuer, { sub: 'alice', groups: ['staff'] }, pointers) as User)
  t.equal(rightIn([to('group', 'corp:staff', 'read')], of('corp')), 'read')
  t.equal(rightIn([to('group', 'corp:staff', 'read')], of('partner')), null)
  t.end()
})

void test('who may write may read; neither is the owner', (t) => {
  const table = (['read', 'write'] as const).map((right) =>
    (['read', 'write', 'owner'] as const).map((needed) => suffices(right, needed)),
  )
  t.strictSame(table, [
    [true, false, false],
    [true, true, false],
  ])
  t.end()
})

void test('a grantee has the key of an issuer and a name, split at the first colon', (t) => {
  for (const id of ['corp:alice', 'a-1:b', 'corp:a:b', 'corp::', `corp:${'x'.repeat(255)}`, 'corp:é x']) t.ok(isGranteeId(id), id)
  for (const id of [
    '',
    'alice',
    'anonymous',
    ':alice',
    'corp:',
    'Corp:alice',
    'co rp:alice',
    'corp:a\nb',
    'corp:\u0000',
    'corp:\ud800',
    `corp:${'x'.repeat(256)}`,
  ]) {
    t.notOk(isGranteeId(id), JSON.stringify(id))
  }
  t.end()
})
