/** The admin API: what is ordered is in force when it is answered, to the letter, and stands in the log. */
import { test } from 'tap'
import type { Credential } from '../../src/core/decide/credential.ts'
import { codeOf } from '../../testing/support/client.ts'
import { NOW, startAdmin } from '../../testing/support/admin.ts'

const at = (tokenId: string | undefined, issuedAt: number | undefined): Credential => ({
  tokenId,
  issuedAt,
  expiresAt: undefined,
})
const REVOKED_AT = '2026-01-31T12:00:00.000Z'

void test('a token is revoked when the answer comes, listed, and lifted again', async (t) => {
  const { ask, list, audit } = await startAdmin(t)
  const made = await ask('/revocations', { body: { tokenId: 'j-1' } })
  t.equal(made.status, 201)
  t.same(made.json, { tokenId: 'j-1', revokedAt: REVOKED_AT })
  t.equal(list.isRevoked('corp:alice', at('j-1', NOW)), true)
  t.same((await ask('/revocations')).json, { revocations: [{ tokenId: 'j-1', revokedAt: REVOKED_AT }] })
  const lifted = await ask('/revocations/token/j-1', { method: 'DELETE' })
  t.same([lifted.status, lifted.text], [204, ''])
  t.equal(list.isRevoked('corp:alice', at('j-1', NOW)), false)
  t.same((await ask('/revocations')).json, { revocations: [] })
  t.same(audit(), [
    { action: 'revoke', target: 'token:j-1', outcome: 'done' },
    { action: 'lift', target: 'token:j-1', outcome: 'done' },
  ])
})

void test('a user is revoked up to a time, or altogether; the wider one stays and is what is answered', async (t) => {
  const { ask, list, audit } = await startAdmin(t)
  const user = 'corp:alice'
  const early = await ask('/revocations', { body: { user, before: '2026-01-31T13:00:00+01:00' } })
  t.same([early.status, early.json], [201, { user, before: '2026-01-31T12:00:00.000Z', revokedAt: REVOKED_AT }])
  t.equal(list.isRevoked(user, at('j', NOW - 1)), true)
  t.equal(list.isRevoked(user, at('j', NOW)), false)
  const all = await ask('/revocations', { body: { user } })
  t.same(all.json, { user, before: null, revokedAt: REVOKED_AT })
  t.equal(list.isRevoked(user, at('j', NOW + 1e9)), true)
  const narrower = await ask('/revocations', { body: { user, before: '2020-01-01T00:00:00Z' } })
  t.same([narrower.status, narrower.json], [201, { user, before: null, revokedAt: REVOKED_AT }])
  t.equal((await ask(`/revocations/user/${user}`, { method: 'DELETE' })).status, 204)
  t.equal(list.isRevoked(user, at('j', 0)), false)
  t.same(
    audit().map(({ action, target }) => [action, target]),
    [['revoke'], ['revoke'], ['revoke'], ['lift']].map(([action]) => [action, 'user:corp:alice']),
  )
})

void test('an audit line names who from where, and which answer', async (t) => {
  const { ask, lines } = await startAdmin(t)
  const { headers } = await ask('/revocations', { body: { tokenId: 'j-1' } })
  t.match(
    lines.filter(({ msg }) => msg === 'admin'),
    [{ level: 'info', client: '127.0.0.1', requestId: headers.get('x-request-id') }],
  )
})

for (const id of ['a/b', 'a b', '?x=1', '#x', '%2F', 'ünï', '..', 'x'.repeat(1024), '\u{1f9f5}'.repeat(512)]) {
  void test(`an id is meant as it is written: ${id.slice(0, 20)}`, async (t) => {
    const { ask, store } = await startAdmin(t)
    t.equal((await ask('/revocations', { body: { tokenId: id } })).status, 201)
    t.equal((await ask('/revocations', { body: { user: `corp:${id.slice(0, 200)}` } })).status, 201)
    // A dot segment would be folded away by the client that is used here.
    const path = id === '..' ? '%2E%2E' : encodeURIComponent(id)
    if (id !== '..') t.equal((await ask(`/revocations/token/${path}`, { method: 'DELETE' })).status, 204)
    const user = encodeURIComponent(`corp:${id.slice(0, 200)}`)
    t.equal((await ask(`/revocations/user/${user}`, { method: 'DELETE' })).status, 204)
    t.equal((await store.revocations()).length, id === '..' ? 1 : 0)
  })
}

void test('an id that was not percent-encoded lifts nothing shorter', async (t) => {
  const { ask, store, audit } = await startAdmin(t)
  await ask('/revocations', { body: { tokenId: 'abc' } })
  for (const path of [
    '/revocations/token/abc?def',
    '/revocations/token/abc?',
    '/revocations/token/abc/',
    '/revocations/token/abc/d',
  ]) {
    const answer = await ask(path, { method: 'DELETE' })
    t.equal(answer.status, 404, path)
  }
  t.equal((await store.revocations()).length, 1)
  t.equal(audit().filter(({ outcome }) => outcome === 'not-found').length, 4)
})

void test('what is not revoked cannot be lifted', async (t) => {
  const { ask, audit } = await startAdmin(t)
  await ask('/revocations', { body: { tokenId: 'j-1' } })
  for (const path of ['token/j-2', 'user/corp:alice', 'user/j-1', 'token/J-1']) {
    const answer = await ask(`/revocations/${path}`, { method: 'DELETE' })
    t.same([answer.status, codeOf(answer)], [404, 'not-found'], path)
  }
  t.match(audit()[1], { action: 'lift', target: 'token:j-2', outcome: 'not-found' })
})

void test('there is nothing else', async (t) => {
  const { ask } = await startAdmin(t)
  for (const [method, path] of [
    ['GET', '/'],
    ['GET', '/revocations/'],
    ['GET', '/revocations?limit=1'],
    ['GET', '/revocations/token/j'],
    ['PUT', '/revocations'],
    ['DELETE', '/revocations'],
    ['OPTIONS', '/revocations'],
    ['GET', '/metrics'],
    ['GET', '/api/copilotkit/info'],
    ['GET', '//revocations'],
    ['GET', '/REVOCATIONS'],
    ['DELETE', '/revocations/token/%ff'],
  ] as const) {
    const answer = await ask(path, { method })
    t.same([answer.status, codeOf(answer)], [404, 'not-found'], `${method} ${path}`)
  }
  t.equal((await ask('/revocations', { method: 'HEAD' })).status, 404)
})

void test('no answer is cacheable, and every one has an id', async (t) => {
  const { ask } = await startAdmin(t)
  const answers = [
    await ask('/revocations'),
    await ask('/revocations', { body: { tokenId: 'j' } }),
    await ask('/revocations', { body: {} }),
    await ask('/revocations/token/j', { method: 'DELETE' }),
    await ask('/nothing'),
    await ask('/revocations', { token: 'x' }),
  ]
  t.same(
    answers.map(({ status }) => status),
    [200, 201, 400, 204, 404, 401],
  )
  for (const { status, headers } of answers) {
    t.equal(headers.get('cache-control'), 'no-store', String(status))
    t.match(headers.get('x-request-id'), /^r-\d+$/)
    if (status !== 204) t.equal(headers.get('content-type'), 'application/json')
    t.notOk([...headers.keys()].some((name) => name.startsWith('access-control')))
  }
})

void test('a store that fails is told, and nothing is said to be done', async (t) => {
  const { ask, breakStore, audit } = await startAdmin(t)
  await breakStore()
  for (const [path, options] of [
    ['/revocations', {}],
    ['/revocations', { body: { tokenId: 'j' } }],
    ['/revocations/token/j', { method: 'DELETE' }],
  ] as const) {
    const answer = await ask(path, options)
    t.same([answer.status, codeOf(answer)], [503, 'store-unavailable'])
  }
  t.same(audit(), [
    { action: 'list', target: undefined, outcome: 'store-unavailable' },
    { action: 'revoke', target: 'token:j', outcome: 'store-unavailable' },
    { action: 'lift', target: 'token:j', outcome: 'store-unavailable' },
  ])
})
