/** Where targets lie is remembered, each under its whole text, and no more of them than a bound. */
import { test } from 'tap'
import type { UpstreamApi } from '../../src/core/route/all-routes.ts'
import { makeTargetCache } from '../../src/http/pipeline/classification.ts'

interface Mounted {
  readonly api: UpstreamApi
  readonly publicPath: string
  readonly agentId: string | null
}

const RUNTIME: Mounted = { api: 'runtime', publicPath: '/api', agentId: null }
const AGENT: Mounted = { api: 'agent', publicPath: '/legal', agentId: 'legal' }
const placeOf = makeTargetCache([RUNTIME, AGENT])

/** What a target comes to, in a word. */
function told(target: string, method = 'GET', find = placeOf): string {
  const place = find(target)
  if (place.outcome === 'refused') return place.reason
  const found = place.classified(method)
  const what =
    found.outcome === 'refused' ? found.reason : `${found.route.id} ${JSON.stringify(found.ids)} ${JSON.stringify(found.query)}`
  return `${place.binding.publicPath} ${place.segments === null ? 'outside' : what}`
}

const CASES = [
  ['/api/threads/t1/messages', 'GET', '/api threads/messages {"threadId":"t1"} []'],
  ['/api/threads/t2/messages', 'GET', '/api threads/messages {"threadId":"t2"} []'],
  ['/api/threads/t1/messages', 'POST', '/api method-not-allowed'],
  ['/api/threads/t1', 'PATCH', '/api threads/update {"threadId":"t1"} []'],
  ['/api/threads/t1', 'DELETE', '/api threads/update {"threadId":"t1"} []'],
  ['/api/threads/clear', 'DELETE', '/api method-not-allowed'],
  ['/api/threads?limit=1', 'GET', '/api threads/list {} [["limit","1"]]'],
  ['/api/threads?limit=2', 'GET', '/api threads/list {} [["limit","2"]]'],
  ['/api/threads', 'GET', '/api threads/list {} []'],
  ['/api/threads/', 'GET', 'target-empty-segment'],
  ['/api/threads/%74', 'GET', 'target-encoding'],
  ['/legal', 'POST', '/legal agent/run {"agentId":"legal"} []'],
  ['/legal', 'GET', '/legal method-not-allowed'],
  ['/elsewhere/threads', 'GET', '/api outside'],
] as const

void test('the same target comes to the same, however often and in whatever order it is asked', (t) => {
  for (let times = 0; times < 3; times += 1) {
    for (const [target, method, expected] of times % 2 === 0 ? CASES : [...CASES].reverse())
      t.equal(told(target, method), expected)
  }
  t.end()
})

void test('callers who ask for ever more of them are answered as before', (t) => {
  const find = makeTargetCache([RUNTIME])
  const first = find('/api/threads/t1/messages')
  t.equal(find('/api/threads/t1/messages'), first, 'it is remembered')
  const long = `/api/threads?limit=${'1'.repeat(300)}`
  t.not(find(long), find(long), 'what is long is not')
  for (let at = 0; at < 5000; at += 1) t.equal(told(`/api/threads/x-${at}/messages`, 'GET', find).includes(`"x-${at}"`), true)
  t.not(find('/api/threads/t1/messages'), first, 'nor is it for ever')
  t.end()
})
