/**
 * A query that decides: oauth2-proxy matched its open routes against path and query together, so `?` and a suffix opened any
 * path (GHSA-7rh7-c77v-6434); frameworks take a method or a path from it; RFC 6750 §2.3 lets a token stand in it. Here a query
 * names no route, no thread, no method and no caller, and only names that the route knows go on, each once.
 */
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { json } from '../../testing/support/upstream.ts'

const BASE = '/api/copilotkit'

/** Queries that some reader takes for more than a query; all are made of characters that a query may have. */
const QUERIES = [
  '',
  '?',
  '/info',
  '/api/copilotkit/info',
  'x/../../info',
  '/threads/clear',
  'next=/threads/clear',
  'path=/threads/clear',
  'path=threads/clear&path=info',
  'url=http://other.example/threads/clear',
  'method=threads/clear',
  'method=info',
  '_method=DELETE',
  'X-HTTP-Method-Override=DELETE',
  'threadId=victim-1',
  'threadId=t1&threadId=victim-1',
  'agentId%5B%5D=x',
  'userId=bob',
  'x-cpki-user-id=bob',
  'health',
  'healthz=1',
  'ready?=1',
  '%2Fthreads%2Fclear',
  '%23/threads/clear',
  'a=%252F..%252Fclear',
  '&&&',
  '=',
  '%3F=%26',
  'constructor=1',
  '__proto__=1',
  '__proto__.admin=1',
  `x=${'%41'.repeat(1300)}`,
]

void testFirstPair('no query makes another request of one that is let through', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, undefined, { pair })
  const run = JSON.stringify(runInput('t1'))
  const requests = [
    { target: '/info' },
    { target: '/agent/default/run', body: run },
    { target: '/threads/t1/messages' },
    { method: 'POST', target: '/agent/default/stop/t1' },
  ]
  for (const { target, ...request } of requests) {
    for (const query of QUERIES) {
      const before = upstream.requests.length
      const answer = await gateway.ask({ ...request, target: `${BASE}${target}?${query}`, token: alice })
      t.equal(answer.status, 200, `${target}?${query.slice(0, 40)}`)
      t.same(
        upstream.requests.slice(before).map((one) => one.target),
        [`${BASE}${target}`],
        `nothing of ?${query.slice(0, 40)} goes on`,
      )
    }
  }
})

void testFirstPair('nor lets one through that is not', async (t, pair) => {
  const { gateway, upstream, alice, bob } = await gated(t, undefined, { pair })
  const run = JSON.stringify(runInput('victim-1'))
  t.equal((await gateway.ask({ target: `${BASE}/agent/default/run`, token: bob, body: run })).status, 200)
  for (const query of QUERIES) {
    for (const [method, path, status] of [
      ['POST', '/threads/clear', 403],
      ['GET', '/threads/victim-1/messages', 403],
      ['GET', '/threads/victim-1/state', 404],
      ['DELETE', '/threads/victim-1', 403],
      ['GET', '/nowhere', 404],
      ['GET', '', 404],
      ['POST', '/info', 405],
    ] as const) {
      const target = `${BASE}${path}?${query}`
      t.equal((await gateway.ask({ method, target, token: alice })).status, status, target.slice(0, 80))
    }
    t.match(await gateway.ask({ target: `${BASE}/info?${query}` }), { status: 401, body: '"code":"credential-missing"' })
  }
  t.equal(upstream.beginnings(), 1, 'the owner’s run, and nothing else')
})

void testFirstPair('a token in a query is no credential', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, undefined, { pair })
  for (const query of [
    `access_token=${alice}`,
    `Authorization=Bearer%20${alice}`,
    `authorization=Bearer+${alice}`,
    `token=${alice}`,
    `id_token=${alice}`,
    `jwt=${alice}`,
    `bearer_token=${alice}`,
    alice,
  ]) {
    const answer = await gateway.ask({ target: `${BASE}/info?${query}` })
    t.match(answer, { status: 401, body: '"code":"credential-missing"' }, query.slice(0, 20))
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('an encoded question mark is part of a path, and no route has one', async (t, pair) => {
  const { gateway, upstream, olga } = await gated(t, undefined, { pair })
  for (const target of ['/info%3Fx', '/threads/clear%3F', '/info%3F/threads/clear', '/threads%3FagentId=default', '/%3F/info']) {
    const { status } = await gateway.ask({ method: 'POST', target: `${BASE}${target}`, token: olga })
    t.ok([400, 404, 405].includes(status), `${target}: ${status}`)
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('a query with two readings is refused before anybody is asked who they are', async (t, pair) => {
  const { client } = pair
  const { gateway, upstream, alice } = await gated(t, undefined, { pair })
  for (const query of [
    'agentId=a&agentId=b',
    'agentId=a&agentId=a',
    'agentId=a&agent%49d=b',
    'agentId&agentId=b',
    'limit=1&limit=2',
    'limit=1&%6cimit=1000',
    'cursor=a&x=1&cursor=b',
    'includeArchived=true&includeArchived=false',
    'x=1;agentId=b',
    'agentId=a;agentId=b',
    'agentId=%zz',
    'agentId=%',
    'agentId=%ff',
    'agentId=%c0%af',
    'agentId=a%00',
    'agentId=a%0d%0aX-A:%201',
    '%00=1',
    'x=%0a',
    'agentId=a#b',
    'agentId=a\\b',
    'agentId={a}',
    'agentId="a"',
    'agentId=<a>',
    'agentId=a|b',
    'agentId[]=a',
    'agentId=a^b',
    'agentId=`a`',
  ]) {
    for (const caller of [{ token: alice }, {}]) {
      const answer = await gateway.ask({ target: `${BASE}/threads?${query}`, ...caller })
      // In an envelope it is read once somebody has said who they are.
      const unread = client === 'single-route' && !('token' in caller)
      t.match(answer, unread ? { status: 401 } : { status: 400, body: '"code":"target-malformed"' }, query)
    }
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('names that the route knows are forwarded, encoded again; those of other routes do not', async (t, pair) => {
  const { client } = pair
  const { gateway, upstream, alice } = await gated(t, json({ threads: [] }), { pair })
  const queries = {
    '/threads?x=1&includeArchived=tr%75e&agentId=%64efault&token=t&skillsPage=2': '/threads?includeArchived=true&agentId=default',
    '/threads?agentId=a.b-c_d': '/threads?agentId=a.b-c_d',
    '/threads?AGENTID=x&agentid=y&agentId=z&agentId%20=w': '/threads?agentId=z',
    '/threads?&includeArchived=/threads/clear?x=y&': '/threads?includeArchived=%2Fthreads%2Fclear%3Fx%3Dy',
    '/threads?includeArchived=a+b%26agentId%3Dc': '/threads?includeArchived=a%20b%26agentId%3Dc',
    // Beside an envelope a query that some route knows has no place.
    ...(client === 'single-route' ? {} : { '/info?agentId=default&cursor=c&limit=1': '/info' }),
  }
  for (const target of Object.keys(queries)) {
    t.equal((await gateway.ask({ target: `${BASE}${target}`, token: alice })).status, 200, target)
  }
  t.same(
    upstream.requests.map(({ target }) => target.slice(BASE.length)),
    Object.values(queries),
  )
})
