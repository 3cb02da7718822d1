/** Token budgets over two gateways on one database: two million tokens of 500 users, and no user exceeds theirs by more than a run. */
import { test } from 'tap'
import { until } from '../../testing/support/until.ts'
import type { Answering } from '../../testing/support/upstream.ts'
import { replicas } from './scene.ts'

const USERS = 500
const LIMIT = 4000
/** The largest run, in tokens. */
const MOST = 900
const AT_ONCE = 4

/** What each user's runs used, as the upstream knows it: never more than MOST each, and never the same twice. */
function usingTokens(used: Map<string, number[]>): Answering {
  let last = 0
  return ({ target, headers }, response) => {
    const user = String(headers.get('x-user')?.[0])
    const tokens = 100 + ((last += 137) % (MOST - 99))
    used.set(user, [...(used.get(user) ?? []), tokens])
    if (!target.endsWith('/run')) return void response.writeHead(404).end()
    const of = { threadId: 't', runId: 'r' }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: ${JSON.stringify({ type: 'RUN_STARTED', ...of })}\n\n`)
    // Runs overlap: the others of the user have begun before this one ends.
    setImmediate(() => {
      const usage = [{ inputTokens: tokens - 50, outputTokens: 50 }]
      response.end(`data: ${JSON.stringify({ type: 'RUN_FINISHED', ...of, usage })}\n\n`)
    })
  }
}

void test('500 users, two replicas, two million tokens: what is spent exceeds a budget by one run at most', async (t) => {
  const tokens = [{ limit: LIMIT, window: '1d', reserve: MOST }]
  const { a, b, upstream, signer, database } = await replicas(t, {
    limits: { tokens },
    config: { identity: { headers: { id: 'x-user' } } },
  })
  const used = new Map<string, number[]>()
  upstream.answer(usingTokens(used))
  let refused = 0
  /** Asks until nothing is left: each of the user's pages on the other replica than the last time. */
  const page = async (user: string, number: number): Promise<void> => {
    const token = signer.sign(user)
    for (let turn = 0; ; turn += 1) {
      const reply = await ((number + turn) % 2 === 0 ? a : b).run(token, `${user}-${number}`)
      if (reply.status === 200) continue
      if (reply.status !== 429) throw new Error(`${reply.status}: ${reply.text}`)
      refused += 1
      if (reply.headers.get('retry-after') !== '1') return
    }
  }
  for (let first = 0; first < USERS; first += 20) {
    const some = Array.from({ length: 20 }, (_, at) => `u${first + at}`)
    await Promise.all(some.flatMap((user) => Array.from({ length: AT_ONCE }, (_, number) => page(user, number))))
  }
  await until(async () => (await database.admin('SELECT 1 FROM threadwarden.token_reserves')).length === 0)

  t.equal(used.size, USERS)
  const sums = [...used.values()].map((runs) => runs.reduce((sum, one) => sum + one, 0))
  const total = sums.reduce((sum, one) => sum + one, 0)
  const over = [...used].filter(([, runs]) => {
    const sum = runs.reduce((before, one) => before + one, 0)
    return sum >= LIMIT + Math.max(...runs)
  })
  t.same(over, [], 'no user exceeds the budget by a whole run')
  t.same(
    sums.filter((sum) => sum < LIMIT),
    [],
    'and every user may use all of it',
  )
  const [counted] = await database.admin(
    'SELECT count(*)::int AS users, sum(spent)::int AS spent FROM threadwarden.token_spending',
  )
  t.same(counted, { users: USERS, spent: total }, 'what was counted is what was used')
  t.comment(`${total} tokens of ${USERS * LIMIT}, ${[...used.values()].flat().length} runs, ${refused} refusals`)
})
