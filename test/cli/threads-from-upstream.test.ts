/** `threadwarden threads import --from-upstream`: the runtime's own list, with whose the threads are. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { clearThreads, startRuntime } from '../../examples/runtime.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { deployment, ownersIn } from './deployment.ts'

/** A runtime that lists one thread, and tells what it was asked with. */
async function startLister(t: Test) {
  const asked: (readonly [string, string | undefined, unknown])[] = []
  const server = createServer(({ url = '', headers }, response) => {
    asked.push([url, headers.authorization, headers['x-key']])
    const threads = [
      { id: 't-1', createdById: 'alice', agentId: 'default' },
      { id: 't-2', createdById: '' },
    ]
    const body = url.endsWith('/info') ? { version: '1.75.0', agents: {} } : { threads, nextCursor: null }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

void test('a mapping says whose the threads of a real runtime are', async (t) => {
  clearThreads()
  const runtime = await startRuntime()
  t.teardown(() => runtime.close())
  for (const threadId of ['t-1', 't-2'])
    await call(`${runtime.url}/api/copilotkit/agent/default/run`, { body: runInput(threadId) })
  const { folder, store, command } = await deployment(t, { 'upstream.url': runtime.url })
  const map = join(folder, 'map.csv')
  writeFileSync(map, 'thread,user\nt-1,corp:alice\nelsewhere,corp:bob\n')
  const ended = await command('threads', 'import', '--from-upstream', '--map', map)
  t.match(ended, { code: 1, stderr: 't-2: the mapping has no owner for it\n' })
  t.match(ended.stdout, /^1 +added$[^]*^1 +in the list, without an owner\n1 +in the mapping, not in the list\n$/m)
  t.same(await ownersIn(store), ['t-1=corp:alice'])
  writeFileSync(map, 'thread,user\nt-1,corp:alice\nt-2,corp:bob\n')
  t.match(await command('threads', 'import', '--from-upstream', '--map', map), {
    code: 0,
    stdout: /^1 +added\n1 +existed already$/m,
  })
  writeFileSync(map, 'thread,user\nt-1,corp:alice\n')
  // One source after the other: what the table knows by now is not open any more.
  t.match(await command('threads', 'import', '--from-upstream', '--map', map), {
    code: 0,
    stdout: /^2 +existed already$/m,
    stderr: '',
  })
})

void test('a thread whose id the gateway refuses is one problem, whether the mapping has it or not', async (t) => {
  clearThreads()
  t.teardown(() => clearThreads())
  const runtime = await startRuntime()
  t.teardown(() => runtime.close())
  for (const threadId of ['t-1', '2024-thread+x'])
    await call(`${runtime.url}/api/copilotkit/agent/default/run`, { body: runInput(threadId) })
  const { folder, command, data } = await deployment(t, { 'upstream.url': runtime.url })
  const map = join(folder, 'map.csv')
  const asked = ['threads', 'import', '--from-upstream', '--map', map] as const
  const why = '"2024-thread+x" is not a thread id: the thread cannot be reached through the gateway\n'
  for (const [line, place] of [
    ['', ''],
    ['2024-thread+x,corp:bob\n', 'line 3: '],
  ] as const) {
    writeFileSync(map, `thread,user\nt-1,corp:alice\n${line}`)
    t.match(await command(...asked), { code: 1, stderr: `${place}${why}` })
    t.match(await data(...asked), { invalid: 1, unmapped: 0, unlisted: 0, same: 1 })
  }
})

void test('a field of the list says whose they are; the upstream is asked with the credential and the headers of the configuration', async (t) => {
  const { url, asked } = await startLister(t)
  const changes = { 'upstream.url': url, 'upstream.headers': { 'X-Key': 'from-the-configuration' } }
  const { folder, store, command } = await deployment(t, changes)
  writeFileSync(join(folder, 'token'), 'hunter2hunter2\n')
  const wishes = ['--owner-field', 'createdById', '--issuer', 'corp', '--token-file', join(folder, 'token'), '--agent', 'default']
  const ended = await command('threads', 'import', '--from-upstream', ...wishes)
  t.match(ended, { code: 1, stdout: /^1 +added$/m, stderr: 't-2: its field createdById does not name an owner\n' })
  t.same(await ownersIn(store), ['t-1=corp:alice'])
  const list = '/api/copilotkit/threads?includeArchived=true&agentId=default'
  t.same(asked, [
    ['/api/copilotkit/info', 'Bearer hunter2hunter2', 'from-the-configuration'],
    [list, 'Bearer hunter2hunter2', 'from-the-configuration'],
  ])
})

void test('an upstream that is away is told, and nothing is imported', async (t) => {
  const { store, command } = await deployment(t)
  const ended = await command('threads', 'import', '--from-upstream', '--owner-field', 'createdById', '--issuer', 'corp')
  t.match(ended, {
    code: 1,
    stdout: '',
    stderr: /^error: the upstream does not answer as a runtime: .*ECONNREFUSED.*; nothing was imported\n$/,
  })
  t.same(await ownersIn(store), [])
})
