/** Smaller parts of the core: pointers, principals, forwarded properties, thread pages, event boundaries, CORS. */
import { test } from 'tap'
import { corsHeaders, isPreflight, preflightHeaders } from '../../src/core/cors.ts'
import { eventBoundary } from '../../src/core/event-boundary.ts'
import { filterForwardedProps, isUnsafeProp } from '../../src/core/forwarded-props.ts'
import { headerLines } from '../../src/core/headers.ts'
import { isPointer, valueAt } from '../../src/core/pointer.ts'
import { userFromClaims } from '../../src/core/principal.ts'
import { gather, readThreadPage, type Gathering, type ThreadPage } from '../../src/core/thread-page.ts'

void test('JSON pointers find own properties only (RFC 6901)', (t) => {
  const document = { a: { 'b/c': 1, 'd~e': 2, '': 3 }, list: ['x'] }
  t.equal(valueAt(document, '/a/b~1c'), 1)
  t.equal(valueAt(document, '/a/d~0e'), 2)
  t.equal(valueAt(document, '/a/'), 3)
  t.equal(valueAt(document, '/list/0'), 'x')
  for (const pointer of ['/constructor', '/a/toString', '/__proto__', '/list/length/x', '/x/y'])
    t.equal(valueAt(document, pointer), undefined, pointer)
  t.ok(isPointer('/a~0b/c'))
  for (const text of ['a', '/~2', '/a~']) t.notOk(isPointer(text), text)
  t.end()
})

void test('claims of a wrong shape grant nothing', (t) => {
  const pointers = { id: '/sub', name: '/name', role: '/role', permissions: '/permissions' }
  const user = (claims: object) => userFromClaims('corp', { sub: 'a:b', ...claims }, pointers)
  t.match(user({ role: 'x y', permissions: 'p q  r' }), { id: 'corp:a:b', roles: ['x y'], permissions: ['p', 'q', 'r'] })
  t.match(user({ role: ['x', 'y'], permissions: ['p q'] }), { roles: ['x', 'y'], permissions: ['p q'] })
  for (const wrong of [{ a: 1 }, 5, true, null, ['x', 5], [['x']], '', [''], []]) {
    t.match(
      user({ role: wrong, permissions: wrong, name: 5 }),
      { roles: [], permissions: [], name: undefined },
      JSON.stringify(wrong),
    )
  }
  t.end()
})

void test('forwardedProps are an allow-list', (t) => {
  const all = { toolChoice: 1, command: { resume: 1, goto: 2, update: 3 }, config: {}, a2ui: 1, toString: 2 }
  t.same(filterForwardedProps(all, new Set(['a2ui'])), {
    kept: { toolChoice: 1, command: { resume: 1 }, a2ui: 1 },
    dropped: ['command.goto', 'command.update', 'config', 'toString'],
  })
  t.same(filterForwardedProps(all, new Set(['command'])).kept['command'], { resume: 1, goto: 2, update: 3 })
  t.same(filterForwardedProps({ command: { goto: 1, resume: 2 } }, new Set(['command.goto'])).kept, {
    command: { goto: 1, resume: 2 },
  })
  t.same(
    filterForwardedProps({ 'command.resume': 1 }, new Set()),
    { kept: {}, dropped: ['command.resume'] },
    'a part of command is no property',
  )
  t.same(filterForwardedProps({ command: 'x' }, new Set()), { kept: {}, dropped: ['command'] })
  for (const value of ['x', 5, ['config']])
    t.same(filterForwardedProps(value, new Set(['0'])), { kept: {}, dropped: ['forwardedProps'] })
  t.same(filterForwardedProps(null, new Set()), { kept: {}, dropped: [] })
  for (const name of ['config', 'context', 'webhook', 'metadata', 'threadMetadata', 'thread_metadata', 'checkpoint', 'checkpointId', 'checkpoint_during', 'nodeName', 'node_name', 'command', 'command.goto', 'multitaskStrategy', 'onCompletion', 'onDisconnect', 'afterSeconds', 'interruptBefore', 'ifNotExists', 'feedbackKeys', 'streamMode', 'streamSubgraphs', 'durability', '__proxiedMCPRequest', 'CONFIG']) t.ok(isUnsafeProp(name), name) // prettier-ignore
  for (const name of ['toolChoice', 'command.resume', 'a2uiAction', 'theme']) t.notOk(isUnsafeProp(name), name)
  t.end()
})

void test('a page of threads is read only if every item can be decided', (t) => {
  t.match(readThreadPage({ threads: [{ id: 'a' }], nextCursor: null, joinCode: 'j', total: 7 }), {
    threads: [{ id: 'a' }],
    next: null,
    joinCodes: { joinCode: 'j' },
  })
  t.match(readThreadPage({ threads: [], nextCursor: 'c' }), { next: 'c' })
  for (const value of [
    null,
    [],
    {},
    { threads: {} },
    { threads: [{}] },
    { threads: [{ id: 5 }] },
    { threads: ['a'] },
    { threads: [], nextCursor: 5 },
  ]) {
    t.equal(readThreadPage(value as never), null, JSON.stringify(value))
  }
  t.end()
})

void test('gathering stops at the first item without room, and says where', (t) => {
  const page = readThreadPage({ threads: ['x', 'a', 'x', 'b', 'c'].map((id) => ({ id })) }) as ThreadPage
  const gathering: Gathering = { items: [], limit: 2 }
  t.same(
    gather(page, { page: 'p', offset: 0 }, (id) => id !== 'x', gathering),
    { page: 'p', offset: 4 },
  )
  t.same(gathering.items, [{ id: 'a' }, { id: 'b' }])
  t.equal(
    gather(page, { page: 'p', offset: 4 }, (id) => id === 'x', gathering),
    null,
    'nothing of the caller’s is left',
  )
  t.end()
})

void test('comments go between events only', (t) => {
  const after = (...chunks: string[]) => {
    const boundary = eventBoundary()
    for (const chunk of chunks) boundary.see(Buffer.from(chunk))
    return boundary.between()
  }
  for (const chunks of [[], ['data: x\n\n'], ['data: x\n', '\n'], ['data: x\r\n\r\n'], ['data: x\r\n\r', '\n'], ['data: x\r\r']]) t.ok(after(...chunks), JSON.stringify(chunks)) // prettier-ignore
  for (const chunks of [['d'], ['data: x\n'], ['data: x\n\ndata'], ['data: x\r\n'], ['data: x\n\n', 'e'], ['data: x\r\n\r']]) t.notOk(after(...chunks), JSON.stringify(chunks)) // prettier-ignore
  t.end()
})

void test('CORS: exact origins, names echoed one by one, nothing at all without configuration', (t) => {
  const lines = (...pairs: string[]) => headerLines(pairs)
  const listed = { origins: ['https://app.test'], credentials: false }
  const preflight = lines(
    'Origin',
    'https://app.test',
    'Access-Control-Request-Method',
    'POST',
    'Access-Control-Request-Headers',
    'authorization, content-type,b@d',
  )
  t.ok(isPreflight('OPTIONS', preflight))
  t.notOk(isPreflight('OPTIONS', lines('Origin', 'https://app.test')))
  t.notOk(isPreflight('POST', preflight))
  t.match(preflightHeaders(preflight, listed), {
    'access-control-allow-origin': 'https://app.test',
    'access-control-allow-headers': 'authorization, content-type',
  })
  for (const origin of ['https://app.test.evil', 'http://app.test', 'https://APP.test', 'null', 'https://app.test:444']) {
    t.equal(preflightHeaders(lines('Origin', origin, 'Access-Control-Request-Method', 'GET'), listed), null, origin)
    t.same(corsHeaders(lines('Origin', origin), listed), { vary: 'Origin' })
  }
  t.same(corsHeaders(preflight, { origins: [], credentials: false }), {})
  t.equal(preflightHeaders(preflight, { origins: [], credentials: false }), null)
  t.equal(corsHeaders(preflight, { origins: ['*'], credentials: false })['access-control-allow-origin'], '*')
  t.equal(corsHeaders(preflight, { ...listed, credentials: true })['access-control-allow-credentials'], 'true')
  t.end()
})
