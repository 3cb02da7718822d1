/** The grammar of request targets: one spelling for each, and 400 before anybody is asked who they are. */
import { test } from 'tap'
import { QUERY_NAMES } from '../../src/core/routes.ts'
import { readTarget } from '../../src/core/target.ts'

const read = (raw: string, base = '/api') => readTarget(raw, base, QUERY_NAMES)

void test('a canonical target is read into segments below the base path and known query names', (t) => {
  t.match(read('/api/threads/a:b/messages?agentId=x%20y&foo=1&limit=5'), {
    segments: ['threads', 'a:b', 'messages'],
    query: new Map([
      ['agentId', 'x y'],
      ['limit', '5'],
    ]),
    droppedQueryNames: 1,
  })
  t.match(
    read('/api/threads/a%3Ab'),
    { segments: ['threads', 'a:b'] },
    'a colon may stand raw or as encodeURIComponent writes it',
  )
  t.match(read('/api/threads/a%20b'), { segments: ['threads', 'a b'] })
  t.match(read('/api'), { segments: [] })
  t.match(read('/', ''), { segments: [] })
  t.match(read('/apix/threads'), { segments: null }, 'a base path ends at a segment')
  t.match(read('/other'), { segments: null })
  t.end()
})

const MALFORMED: Readonly<Record<string, readonly string[]>> = {
  'target-not-origin-form': ['http://x/api/threads', '*', 'api', 'host:443', ''],
  'target-character': ['/api/threads#x', '/api\\threads', '/api/t;x=1', '/api/a b', '/api/"x"', '/api/{x}', '/api/é', '/api/a|b', '/api/a@b', '/api/a=b', '/api/x?a#b', '/api/x?a;b', '/api/x?a\\b'],
  'target-empty-segment': ['/api/', '//api', '/api//threads', '/api/threads/', '//', '//evil/api/threads'],
  'target-dot-segment': ['/api/./threads', '/api/..', '/../api', '/api/.', '/api/%2e%2e/x', '/api/%2E'],
  'target-separator': ['/api/a%2Fb', '/api/a%5Cb', '/api/a%252Fb', '/api/%00', '/api/a%0Ab', '/api/%7F', '/api/a%25b'],
  'target-encoding': ['/api/%zz', '/api/%', '/api/%ff', '/api/%c0%af', '/api/thread%73', '/api/%41', '/api/%c3%a9', '/api/%3a', '/api/%27'],
  'query-encoding': ['/api/threads?x=%zz', '/api/threads?x=%00', '/api/threads?%ff=1', '/api/threads?a=%0d%0a'],
  'query-name-repeated': ['/api/threads?agentId=a&agentId=b', '/api/threads?agentId=a&agent%49d=b', '/api/info?limit=1&limit=1'],
} // prettier-ignore

for (const [reason, targets] of Object.entries(MALFORMED)) {
  void test(`refused as ${reason}`, (t) => {
    for (const raw of targets) t.match(read(raw), { outcome: 'refused', code: 'target-malformed' }, JSON.stringify(raw))
    const reasons = new Set(targets.map((raw) => (read(raw) as { reason?: string }).reason))
    t.ok(reasons.has(reason))
    t.end()
  })
}
