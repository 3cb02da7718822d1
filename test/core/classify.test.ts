/** Classification: the route table of the real runtime, whole paths only, fixed paths before ids. */
import { test } from 'tap'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { upstreamTarget } from '../../src/core/route/transport.ts'
import { ROUTES } from '../../src/core/route/routes.ts'

const find = (method: string, path: string, query: Record<string, string> = {}) =>
  classify(method, path === '' ? [] : path.split('/'), new Map(Object.entries(query)))

void test('every row of the table is found by its method and path, and its target is written back', (t) => {
  for (const row of ROUTES) {
    const path = row.path.map((word) => ({ ':agentId': 'agent', ':threadId': 'T:1', ':memoryId': 'm1' })[word] ?? word)
    const found = classify(row.method, path, new Map()) as RouteDescriptor
    t.match(found, { outcome: 'classified', query: [] })
    t.equal(found.route, row, `${row.method} ${path.join('/')}`)
    t.equal(upstreamTarget('/base', found), `/base/${path.join('/').replace(':', '%3A')}`)
  }
  t.end()
})

void test('fixed paths win over ids for every method', (t) => {
  t.match(find('PATCH', 'threads/clear'), { reason: 'method-not-allowed', allow: ['POST'] })
  t.match(find('DELETE', 'threads/subscribe'), { reason: 'method-not-allowed', allow: ['POST'] })
  t.match(find('PATCH', 'memories/recall'), { reason: 'method-not-allowed', allow: ['POST'] })
  t.match(find('GET', 'threads/T1'), { reason: 'method-not-allowed', allow: ['PATCH', 'DELETE'] })
  for (const method of ['HEAD', 'OPTIONS', 'PUT', 'TRACE', 'get', 'QUERY'])
    t.match(find(method, 'info'), { reason: 'method-not-allowed' }, method)
  t.end()
})

void test('paths match whole: what the runtime would find at the end of a longer one does not exist here', (t) => {
  for (const path of [
    '',
    'x/info',
    'threads/T1/info',
    'junk/threads/T1/messages',
    'agent/a/b/run',
    'threads/threads/clear',
    'Info',
    'agent/run',
    'agent/a/stop',
  ]) {
    for (const method of ['GET', 'POST']) t.match(find(method, path), { reason: 'route-unknown' }, `${method} ${path}`)
  }
  t.end()
})

void test('ids outside their grammar are refused by name', (t) => {
  t.match(
    find('POST', 'agent/agent/stop/run'),
    { reason: 'thread-id-invalid' },
    'the runtime reads this as a run of the agent "stop"',
  )
  t.match(find('GET', 'threads/clear/messages'), { reason: 'thread-id-invalid' })
  t.match(find('POST', 'agent/constructor/run'), { reason: 'agent-id-invalid' })
  t.match(find('GET', 'threads', { agentId: 'a b' }), { reason: 'agent-id-invalid' })
  t.match(find('DELETE', 'memories/info'), { reason: 'memory-id-invalid', code: 'target-malformed' })
  t.end()
})

void test('only query names of the route go on, encoded anew', (t) => {
  const found = find('GET', 'threads', { agentId: 'a', cursor: 'x&y=z', includeInvalidated: 'true' }) as RouteDescriptor
  t.equal(upstreamTarget('', found), '/threads?agentId=a&cursor=x%26y%3Dz')
  t.end()
})
