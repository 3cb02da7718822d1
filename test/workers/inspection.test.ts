/** What an operator sees of a gateway with several processes is what all of them did. */
import { test } from 'tap'
import { requireDocumented } from '../../testing/support/admin-document.ts'
import { until } from '../../testing/support/until.ts'
import { startScene } from './scene.ts'

interface Seen {
  readonly decisions: readonly { readonly principal: { readonly id: string } | null; readonly time: string }[]
  readonly streams: readonly { readonly requestId: string; readonly user: string }[]
  readonly minutes: readonly { readonly permitted: number }[]
}

void test('decisions, counts and streams are those of all workers, and an operator ends the stream of any', async (t) => {
  const scene = await startScene(t)
  const seen = async (path: string): Promise<Seen> => {
    const reply = await scene.operate(path)
    requireDocumented('GET', path, reply)
    return reply.json as Seen
  }
  const workers = [...(await scene.workers()).values()]
  const [first, second] = workers
  if (first === undefined || second === undefined) throw new Error('there are two workers')
  const users = [scene.sign('alice'), scene.sign('bob')] as const
  await first.run(users[0], 't1')
  await second.run(users[1], 't2')
  const open = [await first.connect(users[0], 't1'), await second.connect(users[1], 't2')] as const
  await until(async () => (await seen('/streams')).streams.length === 2)

  const { decisions } = await seen('/decisions?reason=permitted')
  t.same(new Set(decisions.map(({ principal }) => principal?.id)), new Set(['corp:alice', 'corp:bob']))
  const times = decisions.map(({ time }) => time)
  t.same(times, times.toSorted().toReversed(), 'the latest first')
  const { minutes } = await seen('/decisions/minutes')
  const permitted = minutes.reduce((sum, minute) => sum + minute.permitted, 0)
  t.ok(permitted >= decisions.length, `${permitted} of ${decisions.length}`)
  t.match((await scene.operate('/status')).json, {
    workers: 2,
    issuers: [{ key: 'corp' }],
    upstreams: [{ transport: 'multi-route' }],
  })

  const { streams } = await seen('/streams')
  for (const [at, user] of (['corp:alice', 'corp:bob'] as const).entries()) {
    const { requestId = '' } = streams.find((one) => one.user === user) ?? {}
    t.equal((await scene.operate(`/streams/${requestId}`, undefined, 'DELETE')).status, 204)
    await open[at]?.over
    t.match(open[at]?.text(), /"code":"ended-by-operator"/, user)
  }
  t.same((await seen('/streams')).streams, [])
})
