/** Streams end when what they rest on does: a grant, an owner, a thread; by whomever it is ended, and also in the very moment. */
import { execFile } from 'node:child_process'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import Database from 'better-sqlite3'
import { test, type Test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { gateBefore } from '../../testing/support/gated.ts'
import { head, openRaw, type RawConnection } from '../../testing/support/raw.ts'
import { OWNERS_SHARE, sharing, type Sharing } from '../../testing/support/sharing.ts'
import { until } from '../../testing/support/until.ts'
import { json, type Answering } from '../../testing/support/upstream.ts'

/** What a guest sees of the end. */
const ENDED = /"type":"RUN_ERROR","message":"You are no longer allowed to do this.","code":"not-allowed"/

/** The routes that stream. */
type Streaming = 'connect' | 'run'

/** A gateway on which bob may write in t1, which is alice's, with streams that do not end by themselves. */
interface Scene extends Sharing {
  /** Opens a stream on t1 and waits until it has begun. */
  readonly open: (token: string, route?: Streaming, url?: string) => Promise<RawConnection>
  /** Waits until a stream has carried another event of the upstream's: it is open still. */
  readonly goesOn: (stream: RawConnection) => Promise<void>
  /** Does something in another process. */
  readonly elsewhere: (step: string) => Promise<void>
}

async function scene(t: Test, granted: object | null = { user: 'corp:bob', right: 'write' }): Promise<Scene> {
  const responses = new Set<ServerResponse>()
  const begun: Answering = (request, response) => {
    if (request.method === 'DELETE') return json({})(request, response)
    responses.add(response)
    response.on('close', () => responses.delete(response))
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')
  }
  const gate = await sharing(t)
  await gate.run(gate.alice)
  if (granted !== null) t.equal((await gate.operate(granted)).status, 201)
  gate.upstream.answer(begun)
  let events = 0
  return {
    ...gate,
    async open(token, route = 'connect', url = gate.gateway.url) {
      const stream = await begin(t, url, token, route)
      await stream.until('RUN_STARTED')
      return stream
    },
    async goesOn(stream) {
      events += 1
      for (const response of responses) response.write(`data: {"event":${events}}\n\n`)
      await stream.until(`{"event":${events}}`)
      t.notMatch(stream.text(), 'RUN_ERROR')
      t.equal(stream.isClosed(), false)
    },
    async elsewhere(step) {
      const file = join(gate.gateway.folder, 'ownership.db')
      await promisify(execFile)(process.execPath, [join(import.meta.dirname, 'sharing-worker.ts'), file, step])
    },
  }
}

/** Asks for a stream on t1. */
async function begin(t: Test, url: string, token: string, route: Streaming): Promise<RawConnection> {
  const stream = await openRaw(url)
  t.teardown(() => stream.destroy())
  const body = JSON.stringify(runInput('t1'))
  const lines = ['Host: a', `Authorization: Bearer ${token}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
  stream.write(head(`POST /api/copilotkit/agent/default/${route} HTTP/1.1`, ...lines) + body)
  return stream
}

/** The ways in which a grant ends, and who ends it. */
const ENDS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  'by the admin API': ({ operate }) => operate({ user: 'corp:bob' }, 'DELETE'),
  'by the owner': ({ alice, grants }) => grants(alice, { user: 'corp:bob' }, 'DELETE'),
  'by another process': ({ elsewhere }) => elsewhere('ungrant'),
  // Nobody's then, as a new thread is: to begin one is not to go on with another's.
  'by the pruning of its row': ({ elsewhere }) => elsewhere('prune'),
  'by the deletion of the thread': ({ alice, base }) => call(`${base}/threads/t1`, { method: 'DELETE', token: alice }),
}

for (const [how, end] of Object.entries(ENDS)) {
  void test(`a guest’s streams end with the grant, and the owner’s go on: ${how}`, async (t) => {
    const all = await scene(t)
    const { alice, bob, open, goesOn } = all
    const [connected, running, own, ownRun] = [
      await open(bob),
      await open(bob, 'run'),
      await open(alice),
      await open(alice, 'run'),
    ]
    await goesOn(connected)
    await end(all)
    for (const stream of [connected, running]) t.match(await stream.until('RUN_ERROR'), ENDED)
    await connected.until(/\r\n0\r\n\r\n$/)
    await goesOn(own)
    await goesOn(ownRun)
  })
}

for (const step of ['assign', 'withhold']) {
  void test(`when a thread is taken from its owner, everybody’s streams on it end: ${step}`, async (t) => {
    const { alice, bob, open, elsewhere } = await scene(t)
    const streams = [await open(alice), await open(alice, 'run'), await open(bob), await open(bob, 'run')]
    await elsewhere(step)
    for (const stream of streams) t.match(await stream.until('RUN_ERROR'), ENDED)
  })
}

void test('a transfer ends the former owner’s streams; what was granted on the thread goes on', async (t) => {
  const { alice, bob, open, goesOn, elsewhere } = await scene(t)
  const [own, guests] = [await open(alice), await open(bob)]
  await elsewhere('transfer')
  t.match(await own.until('RUN_ERROR'), ENDED)
  await goesOn(guests)
})

void test('of a grant for writing that becomes one for reading, runs end, and reading goes on', async (t) => {
  const { alice, bob, open, goesOn, grants } = await scene(t)
  const [reading, running] = [await open(bob), await open(bob, 'run')]
  t.equal((await grants(alice, { user: 'corp:bob', right: 'read' })).status, 201)
  t.match(await running.until('RUN_ERROR'), ENDED)
  await goesOn(reading)
})

void test('a stream goes on while another grant allows it, and ends with the last', async (t) => {
  const { signer, open, goesOn, operate } = await scene(t, { group: 'corp:eng', right: 'read' })
  await operate({ user: 'corp:eve', right: 'read' })
  const stream = await open(signer.sign('eve', { groups: ['eng'] }))
  await operate({ user: 'corp:eve' }, 'DELETE')
  await goesOn(stream)
  await operate({ group: 'corp:eng' }, 'DELETE')
  t.match(await stream.until('RUN_ERROR'), ENDED)
})

void test('a change of another thread, or of another’s grant, ends nothing', async (t) => {
  const { alice, bob, open, goesOn, run, grants, operate } = await scene(t)
  const stream = await open(bob)
  await operate({ user: 'corp:eve', right: 'read' })
  await operate({ user: 'corp:eve' }, 'DELETE')
  void run(alice, 't2').catch(() => {})
  await until(async () => (await grants(alice, { user: 'corp:bob', right: 'read' }, 'POST', 't2')).status === 201)
  await grants(alice, { user: 'corp:bob' }, 'DELETE', 't2')
  await goesOn(stream)
})

void test('streams end in every gateway on the store', async (t) => {
  const { gateway, upstream, signer, bob, open, operate } = await scene(t)
  const second = await gateBefore(t, upstream.url, { shared: gateway.folder, signer, policy: OWNERS_SHARE })
  const [here, there] = [await open(bob), await open(bob, 'connect', second.gateway.url)]
  await operate({ user: 'corp:bob' }, 'DELETE')
  for (const stream of [here, there]) t.match(await stream.until('RUN_ERROR'), ENDED)
})

/** A guest's stream that the upstream has not begun yet; `answer` begins it. */
async function waiting(t: Test, { gateway, upstream, bob }: Scene) {
  let answer = (): void => {}
  upstream.answer((_request, response) => {
    answer = () => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')
  })
  const before = upstream.requests.length
  const stream = await begin(t, gateway.url, bob, 'connect')
  await upstream.arrived(before + 1)
  return { stream, answer: () => answer() }
}

for (const [how, end] of Object.entries(ENDS).filter(([name]) => !name.includes('deletion'))) {
  void test(`a stream whose grant ended before the upstream begins it is refused: ${how}`, async (t) => {
    const all = await scene(t)
    const { stream, answer } = await waiting(t, all)
    await end(all)
    // What another process did is heard of within moments; the stream is in no list of open ones then.
    if (how.includes('process') || how.includes('pruning')) await new Promise((resolve) => setTimeout(resolve, 700))
    answer()
    const text = await stream.until('not-owner')
    t.match(text, /^HTTP\/1\.1 403/)
    t.notMatch(text, 'RUN_STARTED')
  })
}

void test('an answer that begins while the store fails after a change is 503: nobody knows whether it is allowed', async (t) => {
  const all = await scene(t)
  const { gateway, operate } = all
  const { stream, answer } = await waiting(t, all)
  await operate({ user: 'corp:bob' }, 'DELETE')
  const database = new Database(join(gateway.folder, 'ownership.db'))
  t.teardown(() => database.close())
  database.exec('ALTER TABLE threads RENAME TO gone')
  answer()
  const text = await stream.until('store-unavailable')
  t.match(text, /^HTTP\/1\.1 503/)
  t.notMatch(text, 'RUN_STARTED')
  database.exec('ALTER TABLE gone RENAME TO threads')
})
