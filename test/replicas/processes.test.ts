/** Gateways in processes of their own over one PostgreSQL database, and the command line beside them. */
import { createSigner } from 'fast-jwt'
import { test, type Test } from 'tap'
import { configFile, run, serving } from '../../testing/support/program.ts'
import { startPostgres } from '../../testing/support/postgres.ts'
import { until } from '../../testing/support/until.ts'
import { startUpstream } from '../../testing/support/upstream.ts'
import { ANSWERS, callersOn, ENDED, within } from './callers.ts'

const signer = createSigner({ key: 'x'.repeat(64), algorithm: 'HS256' })
const tokenOf = (subject: string): string => {
  const now = Math.floor(Date.now() / 1000)
  return signer({ iss: 'corp', aud: 'chat', sub: subject, iat: now - 60, exp: now + 3600 })
}
const [ALICE, BOB] = [tokenOf('alice'), tokenOf('bob')]

/** Starts two at the same moment on an empty database; each caller may have two open streams. */
async function pair(t: Test) {
  const database = await startPostgres(t)
  const upstream = await startUpstream(ANSWERS)
  t.teardown(() => upstream.close())
  const start = async () => {
    const { file } = configFile(t, {
      'upstream.url': upstream.url,
      'upstream.transport': 'multi-route',
      'ownership.store': database.url,
      'limits.streams': 2,
    })
    const process = await serving(t, file)
    return { file, process, ...callersOn(t, String(process.listening['url'])) }
  }
  const [a, b] = await Promise.all([start(), start()])
  return { a, b, database }
}

void test('two that start together on an empty database migrate it once, and what one claims the other knows', async (t) => {
  const { a, b, database } = await pair(t)
  const applied = await database.admin('SELECT number FROM threadwarden.migrations ORDER BY number')
  t.same(
    applied.map(({ number }) => Number(number)),
    applied.map((_row, at) => at + 1),
  )
  t.equal((await a.run(ALICE)).status, 200)
  t.equal(await b.reads(ALICE), 200)
  t.equal(await b.reads(BOB), 403)
})

void test('what the command line takes away is gone on both', async (t) => {
  const { a, b } = await pair(t)
  await a.run(ALICE)
  const command = async (...args: readonly string[]): Promise<void> => {
    const ended = await run(t, [...args, '--config', a.file])
    t.equal(ended.code, 0, `${args.join(' ')}: ${ended.stderr}`)
  }
  await command('grants', 'add', '--thread', 't1', '--user', 'corp:bob', '--right', 'write')
  const guests = await Promise.all([a, b].map((replica) => replica.connect(BOB)))
  for (const guest of guests) t.notMatch(guest.text(), ENDED)
  await within(t, () => command('grants', 'remove', '--thread', 't1', '--user', 'corp:bob'), {
    'the guest’s requests are refused': () => until(async () => (await b.reads(BOB)) === 403),
    'the guest’s streams end': () => Promise.all(guests.map((guest) => guest.until(ENDED))),
  })
  const own = await Promise.all([a, b].map((replica) => replica.connect(ALICE)))
  for (const stream of own) t.notMatch(stream.text(), ENDED)
  await within(t, () => command('threads', 'transfer', '--from', 'corp:alice', '--to', 'corp:bob'), {
    'the former owner’s requests are refused': () => until(async () => (await b.reads(ALICE)) === 403),
    'the former owner’s streams end': () => Promise.all(own.map((stream) => stream.until(ENDED))),
  })
  await within(t, () => command('revoke', '--user', 'corp:bob'), {
    'the tokens of the new owner are refused': () => until(async () => (await b.reads(BOB)) === 401),
  })
})

void test('a gateway that is killed gives its streams back when their leases end, and disturbs nobody else', async (t) => {
  const { a, b, database } = await pair(t)
  await a.run(ALICE)
  const leases = () => database.admin('SELECT id FROM threadwarden.open_streams')
  await until(async () => (await leases()).length === 0)
  await a.connect(ALICE)
  const [lease] = await leases()
  const there = await b.connect(ALICE)
  t.match((await b.connect(ALICE)).text(), / 429 /)
  await a.process.end('SIGKILL')
  t.match((await b.connect(ALICE)).text(), / 429 /, 'it may have lost the database alone')
  // As if the time of the lease had passed.
  await database.admin('UPDATE threadwarden.open_streams SET until = clock_timestamp() WHERE id = $1', [lease?.['id']])
  t.match((await b.connect(ALICE)).text(), / 200 /)
  t.match((await b.connect(ALICE)).text(), / 429 /, 'the one that goes on counts')
  t.notMatch(there.text(), ENDED)
  t.equal(await b.reads(ALICE), 200)
})
