/**
 * Text that callers, upstreams and files choose, at a terminal: no command lets a sequence of it through that the terminal would
 * obey, whatever it prints (CWE-150; CVE-2009-4487 and the like in logs). Data for programs means what it meant.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { test, type Test } from 'tap'
import { startUpstream } from '../../testing/support/upstream.ts'
import { deployment, key, own, type Deployment } from './deployment.ts'
import type { Ended } from '../../testing/support/decided.ts'

/** What terminals obey: CSI and OSC by ESC and by C1, a title, a carriage return, DEL, bidi overrides, separators, no-break marks. */
const HOSTILE =
  'a\u001b[2J\u001b[8mb\u001b]0;title\u0007\u009b31m\u009d0;t\u009c\u0085\r\nforged line\u007f\u0008\u202eevil\u2066\u2028\u2029\u200b\ufeff\u{e0041}\u{1d173}z'
/** The same for what is an id: it may not have controls, and may have the rest. */
const HOSTILE_USER = 'corp:a\u202eevil\u2066\u2028\u2029\u200b\ufeff\u{e0041}z'

const OBEYED = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u
/** The styles that the program itself writes, each with its end. */
const STYLES = /\u001b\[(?:1|2|22|31|32|33|39)m/g

const TERMINAL = { isTTY: true }

/** What is wrong with what a command printed at a terminal. */
function faultsOf({ stdout, stderr }: Ended): readonly string[] {
  return [...stdout.split('\n'), ...stderr.split('\n')].filter(
    (line) => OBEYED.test(line.replaceAll(STYLES, '')) || /^\s*forged line/.test(line),
  )
}

/** The name of an assertion: TAP has ends of lines of its own. */
const named = (args: readonly string[]): string => args.join(' ').replaceAll(/[^\x20-\x7e]/g, '?')

async function scene(t: Test): Promise<Deployment> {
  const made = await deployment(t)
  const { store } = made
  await own(store, HOSTILE_USER, 't-1')
  await store.rename(key('t-1'), HOSTILE_USER, HOSTILE)
  const grant = { right: 'read', grantedBy: HOSTILE_USER, grantedAt: 0 } as const
  await store.grant(key('t-1'), null, { ...grant, kind: 'user', id: `${HOSTILE_USER}2` })
  await store.grant(key('t-1'), null, { ...grant, kind: 'group', id: `${HOSTILE_USER}s` })
  await store.revoke({ kind: 'user', userId: HOSTILE_USER, before: null, revokedAt: 0 })
  await store.revoke({ kind: 'token', tokenId: `x${HOSTILE_USER}`, revokedAt: 0 })
  return made
}

void test('text from the store is printed without anything that a terminal obeys', async (t) => {
  const { command } = await scene(t)
  for (const args of [
    ['threads', 'list'],
    ['threads', 'list', '--user', HOSTILE_USER],
    ['threads', 'list', '--agent', HOSTILE],
    ['threads', 'owner', 't-1'],
    ['threads', 'stats'],
    ['threads', 'assign', 't-1', '--to', 'corp:bob', '--expect', 'corp:eve'],
    ['threads', 'assign', 't-1', '--to', HOSTILE_USER],
    ['threads', 'transfer', '--from', HOSTILE_USER, '--to', `${HOSTILE_USER}3`, 't-2'],
    ['grants', 'list', '--thread', 't-1'],
    ['grants', 'list', '--user', `${HOSTILE_USER}2`],
    ['grants', 'add', '--thread', 't-1', '--user', HOSTILE_USER, '--right', 'read'],
    ['grants', 'add', '--thread', 't-1', '--group', `${HOSTILE_USER}s`, '--right', 'write'],
    ['grants', 'remove', '--thread', 't-1', '--user', `${HOSTILE_USER}9`],
    ['revoke', '--list'],
    ['revoke', '--user', HOSTILE_USER],
    ['revoke', '--user', HOSTILE_USER, '--lift'],
    ['revoke', '--token-id', `y${HOSTILE_USER}`],
    ['user', 'export', HOSTILE_USER],
    ['user', 'erase', HOSTILE_USER, '--dry-run'],
  ]) {
    const ended = await command(...args)
    t.same(faultsOf(ended), [], named(args))
    t.not(`${ended.stdout}${ended.stderr}`, '', `${named(args)} says something`)
  }
})

void test('as data it is the same data, with the escapes of JSON', async (t) => {
  const { command } = await scene(t)
  for (const args of [
    ['threads', 'list', '--json'],
    ['threads', 'owner', 't-1', '--json'],
    ['grants', 'list', '--thread', 't-1', '--json'],
    ['revoke', '--list', '--json'],
    ['user', 'export', HOSTILE_USER],
  ]) {
    const ended = await command(...args)
    t.same(faultsOf(ended), [], named(args))
    const text = JSON.stringify(JSON.parse(ended.stdout))
    t.ok(text.includes(JSON.stringify(HOSTILE_USER).slice(1, -1)), `${named(args)} has the user unchanged`)
    if (/^(?:threads|user)/.test(args[0] ?? '')) t.ok(text.includes(JSON.stringify(HOSTILE).slice(1, -1)), 'and the name')
  }
})

void test('at a terminal, where there are colours, there is nothing else that it obeys', async (t) => {
  const { commandIn, folder } = await scene(t)
  for (const args of [
    ['threads', 'owner', 't-1'],
    ['threads', 'export'],
    ['threads', 'export', '--format', 'jsonl'],
    ['threads', 'owner', HOSTILE],
    ['test', join(folder, HOSTILE)],
  ]) {
    const ended = await commandIn(TERMINAL, ...args)
    t.same(faultsOf(ended), [], named(args))
    if (args.includes('jsonl')) t.match(JSON.parse(ended.stdout), { name: HOSTILE, user: HOSTILE_USER })
    if (args.includes('t-1')) t.match(ended.stdout, '\u001b[1m')
  }
})

void test('a file or a pipe gets an export as it is', async (t) => {
  const { commandIn } = await scene(t)
  const lines = await commandIn({}, 'threads', 'export', '--format', 'jsonl')
  t.ok(lines.stdout.includes('\u009b31m'))
  t.match(JSON.parse(lines.stdout), { name: HOSTILE, user: HOSTILE_USER })
  const csv = await commandIn({}, 'threads', 'export')
  t.ok(csv.stdout.includes(HOSTILE))
})

void test('nor does text from files, options or the answers of a server', async (t) => {
  const upstream = await startUpstream((_request, response) => {
    response.writeHead(500, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: HOSTILE, message: HOSTILE, version: HOSTILE, agents: { [HOSTILE]: {} } }))
  })
  t.teardown(() => upstream.close())
  const { command, folder } = await deployment(t, { 'upstream.url': upstream.url })
  const write = (name: string, content: unknown): string => {
    const path = join(folder, name)
    writeFileSync(path, typeof content === 'string' ? content : stringify(content))
    return path
  }
  const rule = { name: HOSTILE, routes: ['info'], allow: ['signed-in'], roles: [HOSTILE] }
  const policy = write('policy.yaml', { version: 1, rules: [rule] })
  const wrong = write('wrong.yaml', { version: 1, [HOSTILE]: 1, rules: [{ ...rule, routes: [HOSTILE], [HOSTILE]: HOSTILE }] })
  const broken = write('broken.yaml', `version: 1\n"\u009b31m: [\u202e`)
  const tests = write('tests.yaml', {
    version: 1,
    policy: 'policy.yaml',
    principals: { alice: { issuer: 'corp', id: 'alice', roles: [HOSTILE] } },
    threads: { mine: { owner: 'alice' } },
    tests: [{ name: HOSTILE, as: 'alice', route: 'threads/messages', thread: 'mine', expect: 'permitted' }],
  })
  const badTests = write('bad-tests.yaml', { version: 1, [HOSTILE]: [], tests: [{ name: HOSTILE, as: HOSTILE, route: HOSTILE }] })
  const claims = write(
    'claims.json',
    JSON.stringify({ iss: 'corp', sub: HOSTILE_USER, name: HOSTILE, role: [HOSTILE], groups: HOSTILE }),
  )
  const owners = write(
    'owners.csv',
    `thread,user,name\n"${HOSTILE}",${HOSTILE_USER},x\nt-1,"${HOSTILE}",x\nt-2,${HOSTILE_USER},x,y\n`,
  )
  const columns = write('columns.csv', `thread,user,"${HOSTILE}"\n`)
  const lines = write('owners.jsonl', `{"thread":${JSON.stringify(HOSTILE)},"user":"corp:a"}\n{${JSON.stringify(HOSTILE)}:1}\n`)
  for (const args of [
    ['validate'],
    ['doctor', '--timeout', '2s'],
    ['diff', policy, wrong],
    ['diff', policy, broken],
    ['diff', policy, join(folder, '..', 'nowhere', HOSTILE)],
    ['test', tests],
    ['test', badTests],
    ['test', join(folder, HOSTILE)],
    ['explain', '--method', 'GET', '--target', '/api/copilotkit/info', '--claims', claims],
    ['explain', '--method', 'GET', '--target', `/${HOSTILE}`, '--claims', claims],
    ['explain', '--method', HOSTILE, '--target', HOSTILE, '--claims', HOSTILE],
    ['explain', '--audit', JSON.stringify({ audit: 1, decision: HOSTILE, reason: HOSTILE, policy: HOSTILE, scope: '' })],
    ['explain', '--audit', HOSTILE],
    ['threads', 'import', owners, '--dry-run'],
    ['threads', 'import', columns],
    ['threads', 'import', lines, '--dry-run'],
    ['threads', 'import', '--from-upstream', '--map', owners],
    ['threads', 'import', join(folder, HOSTILE)],
    ['threads', 'owner', HOSTILE],
    ['threads', 'list', '--user', HOSTILE],
    ['threads', 'list', '--scope', HOSTILE],
    ['threads', 'list', '--limit', HOSTILE],
    ['threads', 'list', `--${HOSTILE}`],
    ['threads', 'export', '--output', join(folder, HOSTILE, 'x')],
    ['threads', HOSTILE],
    ['revoke', '--user', `${HOSTILE}:x`],
    ['doctor', '--timeout', HOSTILE],
    [HOSTILE],
  ]) {
    const ended = await command(...args)
    t.same(faultsOf(ended), [], named(args))
    t.not(`${ended.stdout}${ended.stderr}`, '', `${named(args)} says something`)
  }
})

void test('nor does what is wrong with a configuration, whichever command says it', async (t) => {
  const { command } = await deployment(t, { [HOSTILE]: 1, 'upstream.url': HOSTILE })
  for (const args of [['validate'], ['doctor'], ['serve'], ['routes'], ['threads', 'list'], ['revoke', '--list']]) {
    const ended = await command(...args)
    t.same(faultsOf(ended), [], named(args))
    t.match(`${ended.stdout}${ended.stderr}`, 'forged line', `${named(args)} names the key`)
    t.equal(ended.code, args[0] === 'serve' ? 78 : 1)
  }
})
