/** `threadwarden revoke`: writes to the store of the configuration, and a process that runs on it knows by itself. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { command as revoke } from '../../src/cli/revoke.ts'
import type { Revocation } from '../../src/core/decide/credential.ts'
import { makeRevocationList } from '../../src/store/revocations.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { until } from '../../testing/support/until.ts'
import { run } from './in-process.ts'
import type { Ended } from '../../testing/support/decided.ts'
import { configFile, run as runProcess } from '../../testing/support/program.ts'
import type { Changes } from '../../testing/support/configuration.ts'

const ALICE = 'corp:alice'
const BEFORE = '2026-01-31T12:00:00Z'

/** A configuration whose store is there, and the command on it. */
async function deployment(t: Test, changes: Changes = {}) {
  const { file, folder } = configFile(t, changes)
  const store = await openSqliteStore(join(folder, 'ownership.db'))
  t.teardown(() => store.close())
  const revoked = (...args: readonly string[]): Promise<Ended> => run(t, ['revoke', '--config', file, ...args])
  return { file, folder, store, revoked }
}

/** A revocation without the time at which it was made. */
const without = (all: readonly Revocation[]) =>
  all.map((one) => (one.kind === 'token' ? { tokenId: one.tokenId } : { userId: one.userId, before: one.before }))

void test('what is revoked in one process is in force in another, and so is what is lifted', async (t) => {
  const { file, store } = await deployment(t)
  const revoked = (...args: readonly string[]): Promise<Ended> => runProcess(t, ['revoke', '--config', file, ...args])
  const list = await makeRevocationList(store)
  t.teardown(() => list.stop())
  const ofAlice = { tokenId: 'j-1', issuedAt: 0, expiresAt: undefined }
  t.equal((await revoked('--token-id', 'j-1')).code, 0)
  await until(() => list.isRevoked('corp:bob', ofAlice))
  t.equal((await revoked('--token-id', 'j-1', '--lift')).code, 0)
  await until(() => !list.isRevoked('corp:bob', ofAlice))
  t.equal((await revoked('--user', ALICE)).code, 0)
  await until(() => list.isRevoked(ALICE, ofAlice))
  t.equal(list.isRevoked('corp:bob', ofAlice), false)
  t.equal((await revoked('--user', ALICE, '--lift')).code, 0)
  await until(() => !list.isRevoked(ALICE, ofAlice))
  t.pass('and no longer')
})

void test('it says what it did', async (t) => {
  const { store, revoked } = await deployment(t)
  const since = /\(since \d{4}-\d\d-\d\dT[\d:.]+Z\)\n$/
  const token = await revoked('--token-id', 'j-1')
  t.match(token, { code: 0, stderr: '', stdout: since })
  t.match(token.stdout, /^revoked: token j-1 \(/)
  t.match(
    (await revoked('--user', ALICE, '--before', BEFORE)).stdout,
    /^revoked: tokens issued before 2026-01-31T12:00:00\.000Z of corp:alice \(/,
  )
  t.match((await revoked('--user', ALICE)).stdout, /^revoked: all tokens of corp:alice \(/)
  t.match(
    (await revoked('--user', ALICE, '--before', BEFORE)).stdout,
    /^revoked: all tokens of corp:alice \(/,
    'the wider one stays',
  )
  t.same(without(await store.revocations()), [{ tokenId: 'j-1' }, { userId: ALICE, before: null }])
  const list = await revoked('--list')
  t.match(list, { code: 0, stderr: '' })
  t.match(list.stdout, /^token j-1 \(since .*\)\nall tokens of corp:alice \(since .*\)\n$/)
  t.same(await revoked('--token-id', 'j-1', '--lift'), { code: 0, stdout: 'no longer revoked: token j-1\n', stderr: '' })
  t.same(await revoked('--user', ALICE, '--lift'), { code: 0, stdout: 'no longer revoked: corp:alice\n', stderr: '' })
  t.same(await revoked('--user', ALICE, '--lift'), { code: 1, stdout: '', stderr: 'there is no such revocation\n' })
  t.same(await revoked('--list'), { code: 0, stdout: 'there are no revocations\n', stderr: '' })
})

void test('--json prints it as data, and nothing else', async (t) => {
  const { revoked } = await deployment(t)
  const json = async (...args: readonly string[]): Promise<unknown> => JSON.parse((await revoked('--json', ...args)).stdout)
  const revokedAt = /Z$/
  t.match(await json('--token-id', 'j-1'), { revoked: { tokenId: 'j-1', revokedAt } })
  t.match(await json('--user', ALICE, '--before', BEFORE), {
    revoked: { user: ALICE, before: '2026-01-31T12:00:00.000Z', revokedAt },
  })
  t.match(await json('--list'), { revocations: [{ tokenId: 'j-1' }, { user: ALICE, before: '2026-01-31T12:00:00.000Z' }] })
  t.same(await json('--token-id', 'j-1', '--lift'), { lifted: true })
  t.same(await json('--token-id', 'j-1', '--lift'), { lifted: false })
  t.equal((await revoked('--json', '--token-id', 'j-1', '--lift')).code, 1)
})

void test('--before now means the tokens that there are, by whatever clock within the tolerance, and none of those to come', async (t) => {
  const { store, revoked } = await deployment(t)
  const start = Date.now()
  t.equal((await revoked('--user', ALICE, '--before', 'now')).code, 0)
  const [one] = await store.revocations()
  if (one?.kind !== 'user') throw new Error('a user was revoked')
  t.ok(one.revokedAt >= start && one.revokedAt <= Date.now())
  t.equal(one.before, one.revokedAt + 30_000)
})

for (const [name, args, message] of [
  ['nothing', [], /name one of --token-id ID, --user USER and --list/],
  ['both', ['--token-id', 'j', '--user', ALICE], /name one of/],
  ['a token with a time', ['--token-id', 'j', '--before', BEFORE], /--before TIME can only be combined with --user USER/],
  ['lifting with a time', ['--user', ALICE, '--lift', '--before', BEFORE], /--before TIME can only be combined with --user USER/],
  ['a list of one', ['--list', '--user', ALICE], /--list can only be combined with --config and --json/],
  ['a list with a lift', ['--list', '--lift'], /--list can only/],
  ['an empty token id', ['--token-id', ''], /--token-id must be the jti/],
  ['a user without an issuer', ['--user', 'alice'], /--user must be a user id: issuer:subject/],
  ['a user without a subject', ['--user', 'corp:'], /--user must be a user id: issuer:subject/],
  ['a time without a zone', ['--user', ALICE, '--before', '2026-01-31T12:00:00'], /--before must be a time with its zone/],
  ['a time in words', ['--user', ALICE, '--before', 'yesterday'], /--before must be a time with its zone/],
  ['an issuer that is nearly one', ['--user', 'crop:alice'], /has no issuer "crop": did you mean "corp"\?/],
  ['an issuer that is none', ['--user', 'https://login.example.com/:alice'], /has no issuer "https": it has: corp/],
] as const) {
  void test(`${name}: wrong usage, and nothing is written`, async (t) => {
    const { file, store } = await deployment(t)
    await t.rejects(revoke.run(['--config', file, ...args], process), { name: 'UsageError', message })
    t.same(await store.revocations(), [])
  })
}

void test('wrong usage is exit code 2, and told without a stack trace', async (t) => {
  const { revoked } = await deployment(t)
  t.match(await revoked('--user', 'crop:alice'), {
    code: 2,
    stdout: '',
    stderr: /^threadwarden revoke: the configuration has no issuer "crop": [^\n]*\nSee threadwarden revoke --help\.\n$/,
  })
})

void test('a user of an issuer that the configuration no longer has can still be lifted', async (t) => {
  const { store, revoked } = await deployment(t)
  await store.revoke({ kind: 'user', userId: 'gone:alice', before: null, revokedAt: 1 })
  t.equal((await revoked('--user', 'gone:alice', '--lift')).code, 0)
  t.same(await store.revocations(), [])
})

void test('a store that is not there is not made: no gateway would look at it', async (t) => {
  const { file, folder } = configFile(t)
  const { code, stdout, stderr } = await run(t, ['revoke', '--config', file, '--token-id', 'j'])
  t.same({ code, stdout }, { code: 1, stdout: '' })
  t.match(stderr, /^error: the store .*ownership\.db does not exist: check ownership\.store/)
  t.equal(existsSync(join(folder, 'ownership.db')), false)
})

void test('a store that is none, and a configuration that is invalid, are told without a stack trace', async (t) => {
  const { file, folder } = configFile(t)
  writeFileSync(join(folder, 'ownership.db'), 'this is no database, and long enough to be seen as none\n'.repeat(20))
  const broken = await run(t, ['revoke', '--config', file, '--list'])
  t.match(broken, {
    code: 1,
    stdout: '',
    stderr: /^error: the ownership store .*ownership\.db cannot be opened for writing: [^\n]*\n$/,
  })
  const invalid = await run(t, ['revoke', '--config', configFile(t, { 'listen.prot': 1 }).file, '--list'])
  t.match(invalid, { code: 1, stdout: '', stderr: /^error: .*: listen\.prot: is not a known key [^\n]*\n$/ })
})

void test('where no token is read, it says that revoking has no effect', async (t) => {
  const { revoked } = await deployment(t, { 'authentication.mode': 'off' })
  t.match(await revoked('--token-id', 'j'), { code: 0, stderr: /^warning: authentication\.mode is off/ })
})
