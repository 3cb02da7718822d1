/** The grammar of request targets: one spelling for each, and 400 before anybody is asked who they are. */
import { test } from 'tap'
import { QUERY_NAMES } from '../../src/core/route/all-routes.ts'
import { findMount, readTarget } from '../../src/core/route/target.ts'

const read = (raw: string) => readTarget(raw, QUERY_NAMES)

const segmentsOf = (raw: string, base = '/api') => {
  const target = read(raw)
  return target.outcome === 'read' ? (findMount([{ publicPath: base }], target)?.segments ?? null) : target.reason
}

void test('a canonical target is read into segments and known query names', (t) => {
  t.strictSame(read('/api/threads/a:b/messages?agentId=x%20y&foo=1&limit=5'), {
    outcome: 'read',
    segments: ['api', 'threads', 'a:b', 'messages'],
    query: new Map([
      ['agentId', 'x y'],
      ['limit', '5'],
    ]),
    droppedQueryNames: 1,
  })
  t.strictSame(segmentsOf('/api/threads/a%3Ab'), ['threads', 'a:b'], 'a colon may stand raw or as encodeURIComponent writes it')
  t.strictSame(segmentsOf('/api/threads/a%20b'), ['threads', 'a b'])
  t.end()
})

void test('the base path ends at a segment, and may be missing', (t) => {
  t.strictSame(segmentsOf('/api'), [])
  t.strictSame(segmentsOf('/', ''), [])
  t.strictSame(segmentsOf('/threads', ''), ['threads'])
  t.strictSame(segmentsOf('/a/b/threads', '/a/b'), ['threads'])
  for (const outside of ['/', '/apix/threads', '/other', '/API/threads', '/threads/api'])
    t.equal(segmentsOf(outside), null, outside)
  t.equal(segmentsOf('/a', '/a/b'), null, 'a part of the base path is outside it')
  t.end()
})

const QUERIES: readonly (readonly [query: string, known: Readonly<Record<string, string>>, dropped: number])[] = [
  ['', {}, 0],
  ['?', {}, 0],
  ['?&&', {}, 0],
  ['?limit=5&&', { limit: '5' }, 0],
  ['?limit', { limit: '' }, 0],
  ['?limit=', { limit: '' }, 0],
  ['?=5', {}, 1],
  ['?cursor=a=b', { cursor: 'a=b' }, 0],
  ['?cursor=a?b/c', { cursor: 'a?b/c' }, 0],
  ['?agentId=a+b', { agentId: 'a b' }, 0],
  ['?agentId=a%2Bb', { agentId: 'a+b' }, 0],
  ['?agent%49d=a', { agentId: 'a' }, 0],
  ['?agent+Id=a', {}, 1],
  ['?x=1&x=2&y', {}, 3],
]

void test('a query is read as forms are written: empty pairs are none, a plus is a space, unknown names are counted', (t) => {
  for (const [query, known, droppedQueryNames] of QUERIES) {
    const expected = { outcome: 'read', segments: ['api', 'threads'], query: new Map(Object.entries(known)), droppedQueryNames }
    t.strictSame(read(`/api/threads${query}`), expected, query)
  }
  t.end()
})

const MALFORMED: Readonly<Record<string, readonly string[]>> = {
  'target-not-origin-form': ['http://x/api/threads', '*', 'api', 'host:443', ''],
  'target-character': ['/api/threads#x', '/api\\threads', '/api/t;x=1', '/api/a b', '/api/"x"', '/api/{x}', '/api/é', '/api/a|b', '/api/a@b', '/api/a=b', '/api/x?a#b', '/api/x?a;b', '/api/x?a\\b', '/api/\ud800'],
  'target-empty-segment': ['/api/', '//api', '/api//threads', '/api/threads/', '//', '//evil/api/threads'],
  'target-dot-segment': ['/api/./threads', '/api/..', '/../api', '/api/.', '/api/%2e%2e/x', '/api/%2E'],
  'target-separator': ['/api/a%2Fb', '/api/a%5Cb', '/api/a%252Fb', '/api/%00', '/api/a%0Ab', '/api/%7F', '/api/a%25b'],
  'target-encoding': ['/api/%zz', '/api/%', '/api/%ff', '/api/%c0%af', '/api/thread%73', '/api/%41', '/api/%c3%a9', '/api/%3a', '/api/%27'],
  'query-encoding': ['/api/threads?x=%zz', '/api/threads?x=%00', '/api/threads?%ff=1', '/api/threads?a=%0d%0a'],
  'query-name-repeated': ['/api/threads?agentId=a&agentId=b', '/api/threads?agentId=a&agent%49d=b', '/api/info?limit=1&limit=1'],
} // oxfmt-ignore

for (const [reason, targets] of Object.entries(MALFORMED)) {
  void test(`refused as ${reason}`, (t) => {
    for (const raw of targets)
      t.strictSame(read(raw), { outcome: 'refused', reason, code: 'target-malformed' }, JSON.stringify(raw))
    t.end()
  })
}

void test('a target with two faults is refused for its query', (t) => {
  t.strictSame(read('/api//x?%zz'), { outcome: 'refused', reason: 'query-encoding', code: 'target-malformed' })
  t.end()
})
