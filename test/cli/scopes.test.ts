/** Threads of several upstreams on the command line: `--scope` says which are meant, and what is shown says of which it is. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import type { Store } from '../../src/store/port/store.ts'
import type { Changes } from '../../testing/support/configuration.ts'
import { deployment, type Deployment } from './deployment.ts'

const ALICE = 'corp:alice'
const BOB = 'corp:bob'

const LEGAL = { url: 'http://127.0.0.1:2', basePath: '/api/copilotkit', publicPath: '/legal' }
const SEVERAL: Changes = { 'upstreams.legal': LEGAL, 'agents.research': { url: 'http://127.0.0.1:3' } }
const AGENTS: Changes = { upstream: undefined, 'upstream.url': undefined, 'agents.research': { url: 'http://127.0.0.1:3' } }

/** The thread `t` of alice's, at each of these upstreams; what was used last lies long back. */
async function fill(store: Store, ...scopes: readonly string[]): Promise<void> {
  const row = { threadId: 't', owner: ALICE, agentId: '', name: null, archived: false, createdAt: 1, lastUsedAt: 1 }
  await store.import(
    scopes.map((scope) => ({ ...row, scope })),
    { dryRun: false, settleConflicts: false },
  )
}

async function several(t: Test, changes: Changes = {}): Promise<Deployment> {
  const scene = await deployment(t, { ...SEVERAL, ...changes })
  await fill(scene.store, '', 'legal', 'removed')
  return scene
}

/** Whose each thread is, as `scope/thread=user`, with `!` behind a tombstone. */
async function owners(store: Store): Promise<readonly string[]> {
  const rows = await store.threads({ deleted: 'too' }, null, 1000)
  return rows.map((row) => `${row.scope}/${row.threadId}=${row.owner}${row.deletedAt === null ? '' : '!'}`)
}

void test('a thread is one of upstream, unless --scope names another one', async (t) => {
  const { store, command, data } = await several(t)
  t.match(await command('threads', 'assign', 't', '--to', BOB), { code: 0, stdout: /^t belongs to corp:bob; before/ })
  t.match(await command('threads', 'assign', 't', '--to', BOB, '--scope', ''), { stdout: /^t belongs to corp:bob already/ })
  t.same(await owners(store), [`/t=${BOB}`, `legal/t=${ALICE}`, `removed/t=${ALICE}`])
  const legal = ['t', '--scope', 'legal'] as const
  t.match(await command('threads', 'assign', ...legal, '--to', BOB, '--expect', 'none'), {
    code: 1,
    stderr: `nothing was changed: the owner of t at legal is ${ALICE}\n`,
  })
  t.same(await data('threads', 'assign', ...legal, '--to', BOB), {
    thread: 't',
    scope: 'legal',
    outcome: 'assigned',
    before: ALICE,
  })
  t.match((await command('threads', 'owner', ...legal)).stdout, /^thread +t\nscope +legal\nowner +corp:bob\n/)
  t.match(await data('threads', 'owner', ...legal), {
    thread: 't',
    scope: 'legal',
    row: { thread: 't', scope: 'legal', user: BOB },
  })
  t.notOk('scope' in ((await data('threads', 'owner', 't')) as object))
  t.match(await command('threads', 'owner', 'never', '--scope', 'legal'), { code: 1, stderr: /^never at legal has no owner/ })
  t.same(await data('threads', 'revoke', ...legal), { thread: 't', scope: 'legal', revoked: true })
  t.match(await command('threads', 'revoke', 'x', '--scope', 'legal'), { code: 1, stderr: /no thread x at legal/ })
  t.same(await owners(store), [`/t=${BOB}`, 'legal/t=', `removed/t=${ALICE}`])
})

void test('what an upstream left behind that is gone can be reached; a scope that neither configuration nor table has is wrong usage', async (t) => {
  const { store, command } = await several(t)
  for (const args of [
    ['threads', 'owner', 't'],
    ['threads', 'list'],
    ['threads', 'stats'],
    ['threads', 'export'],
    ['threads', 'prune', '--unused-since', '1d'],
    ['threads', 'transfer', '--from', ALICE, '--to', BOB],
    ['threads', 'transfer', '--from', ALICE, '--to', BOB, '--thread', 't'],
    ['threads', 'assign', 't', '--to', BOB],
    ['threads', 'revoke', 't'],
    ['threads', 'import', '--from-observed'],
    ['grants', 'list', '--user', BOB],
    ['grants', 'list', '--thread', 't'],
    ['grants', 'add', '--thread', 't', '--user', BOB, '--right', 'read'],
    ['grants', 'remove', '--thread', 't', '--user', BOB],
  ]) {
    const ended = await command(...args, '--scope', 'lega')
    t.match(ended, { code: 2, stdout: '' }, args.join(' '))
    t.match(
      ended.stderr,
      /--scope "lega": the configuration has no upstream with this key: did you mean "legal"\? \(and the ownership table has/,
    )
  }
  t.match(
    (await command('threads', 'owner', 't', '--scope', 'somewhere')).stderr,
    /it has: legal, research \(and the ownership table/,
  )
  t.same(await owners(store), [`/t=${ALICE}`, `legal/t=${ALICE}`, `removed/t=${ALICE}`], 'nothing was changed')
  t.match(await command('threads', 'owner', 't', '--scope', 'removed'), { code: 0, stdout: /^scope +removed$/m })
  t.match(await command('threads', 'owner', 't', '--scope', 'research'), { code: 1, stderr: /^t at research has no owner/ })
  t.match(await command('threads', 'prune', '--unused-since', '1d', '--scope', 'removed'), {
    code: 0,
    stdout: /^1 row was/,
    stderr: '',
  })
  t.match(await command('threads', 'owner', 't', '--scope', 'removed'), { code: 2 }, 'and then it is gone')
})

void test('without upstream it has to be said whose thread is meant', async (t) => {
  const { store, command } = await deployment(t, AGENTS)
  await fill(store, 'research')
  for (const args of [
    ['threads', 'owner', 't'],
    ['threads', 'assign', 't', '--to', BOB],
    ['threads', 'revoke', 't'],
    ['threads', 'transfer', '--from', ALICE, '--to', BOB, '--thread', 't'],
    ['grants', 'list', '--thread', 't'],
    ['grants', 'add', '--thread', 't', '--user', BOB, '--right', 'read'],
    ['grants', 'remove', '--thread', 't', '--user', BOB],
  ])
    t.match(await command(...args), { code: 2, stderr: /--scope KEY is missing: name one of research\n/ }, args.join(' '))
  t.same(await owners(store), [`research/t=${ALICE}`])
  t.match(await command('threads', 'owner', 't', '--scope', ''), { code: 2, stderr: /--scope "": .* no upstream without a key/ })
  t.match(await command('threads', 'assign', 't', '--scope', 'research', '--to', BOB), { stdout: /^t at research belongs to/ })
})

void test('list shows the threads of all upstreams with their scopes, or those of one', async (t) => {
  const { store, command, data } = await several(t)
  const all = (await command('threads', 'list')).stdout
  t.match(all, /^THREAD +SCOPE +OWNER .*\nt +corp:alice .*\nt +legal +corp:alice .*\nt +removed +corp:alice .*\n$/)
  t.match(await data('threads', 'list', '--scope', 'legal'), { threads: [{ thread: 't', scope: 'legal' }], more: false })
  const { threads } = (await data('threads', 'list', '--scope', '')) as { threads: readonly object[] }
  t.equal(threads.length, 1)
  t.notOk('scope' in (threads[0] ?? {}))
  t.notMatch((await command('threads', 'list', '--scope', '')).stdout, /SCOPE/)
  await store.bury({ scope: 'legal', threadId: 't' }, ALICE, 1, 'unknown')
  t.match(await data('threads', 'list', '--scope', 'legal', '--user', ALICE), { threads: [] })
})

void test('stats counts everything, or what one upstream has', async (t) => {
  const { store, command, data } = await several(t)
  await store.observe({ scope: 'legal', threadId: 'seen' }, BOB, '', 'run', 1)
  t.match(await data('threads', 'stats'), { threads: 3, owners: 1, observed: 1, revocations: 0 })
  const legal = await data('threads', 'stats', '--scope', 'legal')
  t.match(legal, { threads: 1, owners: 1, observed: 1 })
  t.notOk('revocations' in (legal as object), 'which are of no upstream')
  t.match(await data('threads', 'stats', '--scope', ''), { threads: 1, observed: 0 })
  t.notMatch((await command('threads', 'stats', '--scope', 'legal')).stdout, /revocations/)
})

void test('transfer moves what a user has at all upstreams, or at one', async (t) => {
  const { store, command } = await several(t)
  const transfer = ['threads', 'transfer', '--from', ALICE, '--to', BOB] as const
  t.match(await command(...transfer, '--scope', 'removed'), { code: 0, stdout: `1 row of ${ALICE} moved to ${BOB}\n` })
  t.same(await owners(store), [`/t=${ALICE}`, `legal/t=${ALICE}`, `removed/t=${BOB}`])
  const one = await command(...transfer, '--thread', 't', '--scope', 'legal')
  t.match(one, { code: 0, stdout: `t at legal of ${ALICE} moved to ${BOB}\n` })
  t.match(await command(...transfer, '--thread', 't', '--scope', 'legal'), { code: 1, stderr: /^t at legal does not belong to/ })
  t.same(await owners(store), [`/t=${ALICE}`, `legal/t=${BOB}`, `removed/t=${BOB}`])
  await fill(store, 'research')
  t.match(await command(...transfer), { code: 0, stdout: `2 rows of ${ALICE} moved to ${BOB}\n` })
})

void test('prune throws away what all upstreams have, or one, and warns of those that it is about', async (t) => {
  const changes: Changes = {
    'upstreams.legal': { ...LEGAL, unknownThread: 'deny' },
    'upstreams.other': { ...LEGAL, url: 'http://127.0.0.1:4', publicPath: '/other', unknownThread: 'verify' },
  }
  const { store, command } = await several(t, changes)
  const prune = ['threads', 'prune', '--unused-since', '1d'] as const
  const warned = (await command(...prune, '--dry-run')).stderr
  t.match(warned, /^warning: unknownThread is claim for upstream, agents\.research: the first user/m)
  t.match(warned, /^warning: unknownThread is deny for upstreams\.legal: no user/m)
  t.match(warned, /^warning: unknownThread is verify for upstreams\.other: no user/m)
  const legal = await command(...prune, '--scope', 'legal')
  t.same(legal, {
    code: 0,
    stdout: '1 row was deleted\n',
    stderr: 'warning: unknownThread is deny: no user can use these threads any more\n',
  })
  t.same(await owners(store), [`/t=${ALICE}`, `removed/t=${ALICE}`])
  t.match(await command(...prune), { code: 0, stdout: '2 rows were deleted\n' })
})

void test('grants are on the thread of the upstream that is named', async (t) => {
  const { store, command, data } = await several(t)
  const to = ['--thread', 't', '--user', BOB, '--scope', 'legal'] as const
  t.match(await command('grants', 'add', ...to, '--right', 'read'), { code: 0, stdout: 'user corp:bob may read t at legal\n' })
  t.match(await data('grants', 'add', ...to, '--right', 'read'), { thread: 't', scope: 'legal', outcome: 'unchanged' })
  const grant = { kind: 'user', id: BOB, right: 'write', grantedBy: ALICE, grantedAt: 0 } as const
  await store.grant({ scope: '', threadId: 't' }, null, grant)
  t.match((await command('grants', 'list', '--thread', 't')).stdout, /^write to user corp:bob/)
  t.match((await command('grants', 'list', '--thread', 't', '--scope', 'legal')).stdout, /^read to user corp:bob/)
  t.match((await command('grants', 'list', '--user', BOB)).stdout, /^t: write to user .*\nt at legal: read to user .*\n$/)
  t.match(await data('grants', 'list', '--user', BOB), { grants: [{ thread: 't' }, { thread: 't', scope: 'legal' }] })
  t.match((await command('grants', 'list', '--user', BOB, '--scope', '')).stdout, /^t: write to user [^\n]*\n$/)
  t.match(await command('grants', 'list', '--thread', 'x', '--scope', 'legal'), {
    code: 1,
    stderr: /x at legal does not exist or was deleted/,
  })
  t.same(await data('grants', 'remove', ...to), { thread: 't', scope: 'legal', removed: true })
  t.match(await command('grants', 'remove', ...to), { code: 1, stderr: /has no grant on t at legal: threadwarden grants list/ })
  t.equal((await store.grantedTo(grant, null, 10)).length, 1, 'the other one stands')
})

for (const format of ['csv', 'jsonl'])
  void test(`${format}: what is exported of all upstreams is imported where it was, and of one alone with its scope`, async (t) => {
    const [here, there, elsewhere] = [await deployment(t, SEVERAL), await deployment(t, SEVERAL), await deployment(t, SEVERAL)]
    await fill(here.store, '', 'legal', 'research')
    const file = (name: string) => join(here.folder, `${name}.${format}`)
    await here.command('threads', 'export', '--output', file('all'))
    t.match(await there.command('threads', 'import', file('all')), { code: 0, stdout: /^3 +added$/m })
    t.same(await owners(there.store), await owners(here.store))
    await here.command('threads', 'export', '--output', file('legal'), '--scope', 'legal')
    t.match(await elsewhere.command('threads', 'import', file('legal')), { code: 0, stdout: /^1 +added$/m })
    t.same(await owners(elsewhere.store), [`legal/t=${ALICE}`])
    await here.command('threads', 'export', '--output', file('first'), '--scope', '')
    t.notMatch(readFileSync(file('first'), 'utf8'), 'scope')
    t.match(await elsewhere.command('threads', 'import', file('first')), { code: 0 })
    t.same(await owners(elsewhere.store), [`/t=${ALICE}`, `legal/t=${ALICE}`])
  })

void test('lines without a scope are of upstream, or of what --scope names; where there is no upstream it has to be said', async (t) => {
  const { folder, store, command } = await deployment(t, SEVERAL)
  const file = join(folder, 'threads.csv')
  writeFileSync(file, 'thread,user,scope\na,corp:alice,\nb,corp:alice,legal\nc,corp:alice,gone\n')
  const ended = await command('threads', 'import', file, '--scope', 'research')
  t.match(ended, { code: 1, stdout: /^2 +added$/m })
  t.match(
    ended.stderr,
    /^line 4: the scope "gone" is not valid: the configuration has no upstream with this key: it has: legal, research\n$/,
  )
  t.same(await owners(store), [`legal/b=${ALICE}`, `research/a=${ALICE}`])
  await fill(store, 'gone')
  t.match(await command('threads', 'import', file, '--scope', 'gone'), {
    code: 2,
    stderr: /--scope "gone": the configuration has/,
  })
  writeFileSync(file, 'thread,user\nb,corp:bob\n')
  t.match(await command('threads', 'import', file, '--scope', 'legal'), {
    stderr: /^line 2: b at legal \(corp:bob\): it belongs to/,
  })
  const report = join(folder, 'report.jsonl')
  await command('threads', 'import', file, '--scope', 'legal', '--report', report)
  t.match(JSON.parse(readFileSync(report, 'utf8')), { kind: 'conflict', thread: 'b', scope: 'legal' })

  const alone = await deployment(t, AGENTS)
  const none = await alone.command('threads', 'import', file)
  t.match(none, {
    code: 1,
    stderr: /^line 2: it has no scope: write the key of its upstream to scope, or use --scope KEY \(research\)\n$/,
  })
  t.match(await alone.command('threads', 'import', file, '--scope', 'research'), { code: 0, stdout: /^1 +added$/m })
})

void test('what was observed is confirmed at all upstreams, or at one', async (t) => {
  const { store, command } = await deployment(t, SEVERAL)
  for (const scope of ['', 'legal', 'research']) await store.observe({ scope, threadId: 't' }, ALICE, '', 'run', 1)
  for (const user of [ALICE, BOB]) await store.observe({ scope: 'legal', threadId: 'u' }, user, '', 'run', 1)
  const legal = await command('threads', 'import', '--from-observed', '--scope', 'legal')
  t.match(legal, { code: 1, stdout: /^1 +added$/m, stderr: /^u at legal: several users ran it/ })
  t.same(await owners(store), [`legal/t=${ALICE}`])
  t.match(await command('threads', 'import', '--from-observed'), { stdout: /^2 +added$/m })
  t.same(await owners(store), [`/t=${ALICE}`, `legal/t=${ALICE}`, `research/t=${ALICE}`])
})

void test('the list is that of the first runtime, or of the one that is named; an agent has none', async (t) => {
  const asked: string[] = []
  const server = createServer(({ url = '' }, response) => {
    asked.push(url)
    const threads = [{ id: 'listed', createdById: 'alice' }]
    const body = url.endsWith('/info') ? { version: '1.75.0', agents: {} } : { threads, nextCursor: null }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const at = (basePath: string) => ({ url, basePath, publicPath: basePath, headers: {} })
  const agents = { 'agents.research': { url } }
  const list = ['threads', 'import', '--from-upstream', '--owner-field', 'createdById', '--issuer', 'corp'] as const

  const two = await deployment(t, { ...agents, upstream: at('/first'), 'upstreams.legal': at('/legal') })
  t.match(await two.command(...list, '--scope', 'legal'), { code: 0, stdout: /^1 +added$/m })
  t.ok(asked.length > 0 && asked.every((target) => target.startsWith('/legal/')))
  t.same(await owners(two.store), [`legal/listed=${ALICE}`])
  t.match(await two.command(...list), { code: 0, stdout: /^1 +added$/m })
  t.same(await owners(two.store), [`/listed=${ALICE}`, `legal/listed=${ALICE}`])
  const map = join(two.folder, 'map.csv')
  writeFileSync(map, 'thread,user\nlisted,corp:bob\n')
  const mapped = await two.command('threads', 'import', '--from-upstream', '--map', map, '--scope', 'legal')
  t.match(
    mapped,
    { code: 1, stderr: /^line 2: listed at legal \(corp:bob\): it belongs to/ },
    'the mapping is of the same upstream',
  )
  const stderr = /--from-upstream: agents\.research is an agent, and has no list of threads/
  t.match(await two.command(...list, '--scope', 'research'), { code: 2, stderr })
  t.match(await two.command(...list, '--scope', 'lega'), { code: 2, stderr: /--scope "lega": .* did you mean "legal"/ })

  const legal = await deployment(t, {
    ...agents,
    upstream: undefined,
    'upstream.url': undefined,
    'upstreams.legal': at('/legal'),
  })
  t.match(await legal.command(...list), { code: 0, stdout: /^1 +added$/m })
  t.same(await owners(legal.store), [`legal/listed=${ALICE}`])
  const alone = await deployment(t, AGENTS)
  t.match(await alone.command(...list), { code: 2, stderr: /the configuration has only agents/ })
})

void test('what is held of a user is told with the upstream that it is of', async (t) => {
  const { store, command } = await several(t)
  await fill(store, 'research')
  const grant = { kind: 'user', id: BOB, right: 'read', grantedBy: ALICE, grantedAt: 0 } as const
  await store.grant({ scope: 'legal', threadId: 't' }, null, grant)
  await store.observe({ scope: 'research', threadId: 'seen' }, BOB, '', 'run', 1)
  const told = async (user: string): Promise<unknown> => JSON.parse((await command('user', 'export', user)).stdout)
  t.match(await told(ALICE), {
    threads: [{ thread: 't', scope: undefined }, { scope: 'legal' }, { scope: 'removed' }, { scope: 'research' }],
    granted: [{ thread: 't', scope: 'legal' }],
  })
  t.match(await told(BOB), { received: [{ thread: 't', scope: 'legal' }], observed: [{ thread: 'seen', scope: 'research' }] })
  t.match(await command('user', 'erase', ALICE, '--yes'), { code: 0 })
  t.same(await owners(store), ['/t=!', 'legal/t=!', 'removed/t=!', 'research/t=!'])
})
