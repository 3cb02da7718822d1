/** What stands before a tool, also for callers whom no compiler has checked. */
// `as never`: the users and names of plain JavaScript, which no type excludes.
import { test } from 'tap'
import { hasPermission, PermissionDenied, requirePermission, requireRole } from '../../src/sdk/agent/index.ts'

const bob = { user_id: 'corp:bob', role: 'member', roles: ['member', 'tester'], permissions: ['threads:read'] }

void test('who has the permission passes, who lacks it is told so by name', (t) => {
  t.equal(requirePermission(bob, 'threads:read'), undefined)
  t.equal(hasPermission(bob, 'threads:read'), true)
  t.equal(hasPermission(bob, 'threads:operate'), false)
  t.throws(() => requirePermission(bob, 'threads:operate'), {
    ...{ name: 'PermissionDenied', code: 'permission-denied', message: 'corp:bob lacks threads:operate' },
    ...{ user_id: 'corp:bob', missing: 'threads:operate' },
  })
  t.end()
})

void test('permissions are compared to the letter', (t) => {
  for (const near of ['threads', 'Threads:read', 'threads:read ', 'threads:*', '*', 'length', '0']) {
    t.throws(() => requirePermission(bob, near), PermissionDenied)
  }
  t.end()
})

void test('a user who was handed on in another shape is granted nothing', (t) => {
  const shapes = [undefined, null, 'threads:read', { 'threads:read': true }, new Set(['threads:read']), 1]
  for (const permissions of shapes as never[]) {
    t.throws(() => requirePermission({ user_id: 'x', permissions }, 'threads:read'), PermissionDenied)
    t.throws(() => requireRole({ user_id: 'x', roles: permissions }, 'threads:read'), PermissionDenied)
  }
  for (const nobody of [undefined, null] as never[]) t.throws(() => requirePermission(nobody, 'threads:read'), TypeError)
  t.end()
})

void test('a permission or role that has no name is a mistake, and nobody has it', (t) => {
  for (const nothing of [undefined, null, '', 1] as never[]) {
    t.throws(() => requirePermission({ user_id: 'x', permissions: [nothing] }, nothing), TypeError)
    t.throws(() => requireRole({ user_id: 'x', roles: [nothing] }, nothing), TypeError)
  }
  t.end()
})

void test('a role may be any of several', (t) => {
  requireRole(bob, 'member')
  requireRole(bob, 'tester')
  requireRole({ user_id: 'x', role: 'admin' }, 'admin')
  t.throws(() => requireRole(bob, 'admin'), { message: 'corp:bob lacks the role admin', missing: 'admin' })
  t.end()
})
