/** The ownership table is one for all workers: what one of them changes, or an operator, the next request at any other sees. */
import { test } from 'tap'
import { run as runProgram } from '../../testing/support/program.ts'
import { startScene } from './scene.ts'

void test('of two who race for a thread at different workers exactly one gets it', async (t) => {
  const scene = await startScene(t)
  const [one, two] = [...(await scene.workers()).values()] as const
  const [alice, bob] = [scene.sign('alice'), scene.sign('bob')]
  const owners = new Set<string>()
  for (let round = 0; round < 30; round += 1) {
    const thread = `raced-${round}`
    const results = await Promise.all([one!.run(alice, thread), two!.run(bob, thread)])
    const statuses = results.map(({ status }) => status)
    t.same([...statuses].sort(), [200, 403], thread)
    const owner = statuses[0] === 200 ? 'alice' : 'bob'
    owners.add(owner)
    for (const worker of [one!, two!]) {
      t.equal(await worker.reads(alice, thread), owner === 'alice' ? 200 : 403)
      t.equal(await worker.reads(bob, thread), owner === 'bob' ? 200 : 403)
    }
  }
  t.ok(owners.size > 0)
})

void test('grants, transfers and deletions are seen by the next request at every worker', async (t) => {
  const scene = await startScene(t)
  const workers = [...(await scene.workers()).values()]
  const [first] = workers
  const [alice, bob] = [scene.sign('alice'), scene.sign('bob')]
  const seen = async (token: string): Promise<readonly number[]> => {
    const statuses: number[] = []
    for (const worker of workers) statuses.push(await worker.reads(token, 't1'))
    return statuses
  }
  t.equal((await first!.run(alice, 't1')).status, 200)
  t.same(
    [await seen(alice), await seen(bob)],
    [
      [200, 200],
      [403, 403],
    ],
  )
  for (let round = 0; round < 5; round += 1) {
    t.equal((await scene.operate('/threads/t1/grants', { user: 'corp:bob', right: 'read' })).status, 201)
    t.same(await seen(bob), [200, 200], 'an operator grants')
    t.equal((await scene.operate('/threads/t1/grants', { user: 'corp:bob' }, 'DELETE')).status, 204)
    t.same(await seen(bob), [403, 403], 'an operator takes it back')
  }
  for (const worker of workers) {
    t.equal((await worker.ask(alice, '/threadwarden/threads/t1/grants', { user: 'corp:bob', right: 'read' })).status, 201)
    t.same(await seen(bob), [200, 200], 'an owner grants')
    t.equal((await worker.ask(alice, '/threadwarden/threads/t1/grants', { user: 'corp:bob' }, 'DELETE')).status, 204)
    t.same(await seen(bob), [403, 403], 'an owner takes it back')
  }
  const transferred = await runProgram(t, [
    ...['threads', 'transfer', '--config', scene.file],
    ...['--from', 'corp:alice', '--to', 'corp:bob', '--quiet'],
  ])
  t.equal(transferred.code, 0, transferred.stderr)
  t.same(
    [await seen(alice), await seen(bob)],
    [
      [403, 403],
      [200, 200],
    ],
    'a transfer',
  )
  t.equal((await first!.ask(bob, '/threads/t1', undefined, 'DELETE')).status, 200)
  t.same(
    [await seen(alice), await seen(bob)],
    [
      [403, 403],
      [403, 403],
    ],
    'a deletion',
  )
  for (const worker of workers) t.equal((await worker.run(alice, 't1')).status, 403)
})

void test('runs on a thread that every worker remembers go by whose it is now', async (t) => {
  const scene = await startScene(t)
  const workers = [...(await scene.workers()).values()]
  const [alice, bob] = [scene.sign('alice'), scene.sign('bob')]
  const runs = async (token: string): Promise<readonly number[]> => {
    const statuses: number[] = []
    // The second run of each goes by what the first has left behind.
    for (const worker of [...workers, ...workers]) statuses.push((await worker.run(token, 't1')).status)
    return statuses
  }
  const [passed, refused] = [
    [200, 200, 200, 200],
    [403, 403, 403, 403],
  ]
  t.same(await runs(alice), passed)
  for (let round = 0; round < 3; round += 1) {
    t.equal((await scene.operate('/threads/t1/grants', { user: 'corp:bob', right: 'write' })).status, 201)
    t.same(await runs(bob), passed, 'a grant')
    t.equal((await scene.operate('/threads/t1/grants', { user: 'corp:bob' }, 'DELETE')).status, 204)
    t.same(await runs(bob), refused, 'none any more')
    t.same(await runs(alice), passed)
  }
  await runProgram(t, ['threads', 'transfer', '--config', scene.file, '--from', 'corp:alice', '--to', 'corp:bob', '--quiet'])
  t.same([await runs(alice), await runs(bob)], [refused, passed], 'a transfer')
})

void test('a stream ends at every worker with the grant that it rests on', async (t) => {
  const scene = await startScene(t)
  const workers = [...(await scene.workers()).values()]
  const [alice, bob] = [scene.sign('alice'), scene.sign('bob')]
  await workers[0]!.run(alice, 't1')
  await scene.operate('/threads/t1/grants', { user: 'corp:bob', right: 'read' })
  const streams = await Promise.all(workers.map((worker) => worker.connect(bob, 't1')))
  await scene.operate('/threads/t1/grants', { user: 'corp:bob' }, 'DELETE')
  for (const stream of streams) {
    await stream.over
    t.match(stream.text(), /"type":"RUN_ERROR"/)
  }
})

void test('cursors of one worker are good at the others', async (t) => {
  const scene = await startScene(t, {
    answering: (request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const threads = ['t1', 't2', 't3'].map((id) => ({ id, name: id }))
      response.end(JSON.stringify(request.method === 'POST' ? {} : { threads }))
    },
  })
  const workers = [...(await scene.workers()).values()]
  const alice = scene.sign('alice')
  for (const thread of ['t1', 't2', 't3']) await workers[0]!.run(alice, thread)
  const page = (await workers[0]!.ask(alice, '/threads?agentId=default&limit=1')).json as { readonly nextCursor: string }
  const { status, json } = await workers[1]!.ask(
    alice,
    `/threads?agentId=default&limit=2&cursor=${encodeURIComponent(page.nextCursor)}`,
  )
  t.equal(status, 200)
  t.match(json, { threads: [{ id: 't2' }, { id: 't3' }] })
})
