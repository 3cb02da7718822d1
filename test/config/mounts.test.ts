/** Several upstreams in one gateway: none in another's way, each with a scope and settings of its own. */
import { test } from 'tap'
import { mountsOf } from '../../src/config/mounts.ts'
import { accepted, configuration, faultPaths, faultsIn, type Changes } from '../../testing/support/configuration.ts'

const LEGAL = { url: 'http://127.0.0.1:4100', basePath: '/api/copilotkit', publicPath: '/legal' }
const RESEARCH = { url: 'http://127.0.0.1:5000' }

const mounts = (changes: Changes) => mountsOf(accepted(changes).config)

void test('each upstream is a scope under a public path of its own', (t) => {
  const found = mounts({ 'upstreams.legal': LEGAL, 'agents.research': RESEARCH, 'agents.math': { ...RESEARCH, path: '/awp/' } })
  t.match(found, [
    { scope: '', agentId: null, publicPath: '/api/copilotkit', basePath: '/api/copilotkit', transport: 'auto' },
    { scope: 'legal', agentId: null, publicPath: '/legal', basePath: '/api/copilotkit', url: LEGAL.url },
    { scope: 'research', agentId: 'research', publicPath: '/agents/research', basePath: '/', transport: 'endpoint' },
    { scope: 'math', agentId: 'math', publicPath: '/agents/math', basePath: '/awp/', userScoped: false },
  ])
  t.equal(found.length, 4)
  t.end()
})

void test('an agent needs no runtime beside it, and neither does a further runtime; without any of them nothing is served', (t) => {
  t.match(mounts({ upstream: undefined, 'agents.research': RESEARCH }), [{ scope: 'research' }])
  t.match(mounts({ upstream: undefined, 'upstreams.legal': LEGAL }), [{ scope: 'legal' }])
  t.match(faultsIn({ upstream: undefined, upstreams: {}, agents: {} }), [{ path: 'upstream', message: 'is required' }])
  t.end()
})

void test('what is said of all holds where an upstream says nothing else', (t) => {
  const own = { unknownThread: 'deny', lists: 'table', assertionAudience: 'legal' }
  const all = { 'ownership.unknownThread': 'verify', 'ownership.lists': 'auto' }
  t.match(
    mounts({
      ...all,
      'upstreams.legal': { ...LEGAL, ...own },
      'upstreams.other': { ...LEGAL, url: 'http://127.0.0.1:4200', publicPath: '/other' },
      'agents.a': { ...RESEARCH, unknownThread: 'claim' },
    }),
    [
      { unknownThread: 'verify', lists: 'auto', assertionAudience: undefined },
      own,
      { unknownThread: 'verify', lists: 'auto' },
      { unknownThread: 'claim', lists: 'upstream' },
    ],
  )
  t.end()
})

const ASSERTION = { keyFiles: ['a.pem'], issuer: 'https://chat.example.com', audience: 'agents' }

void test('beside another upstream, one with a key has an audience of its own; alone it has that of all', (t) => {
  const audiences = (changes: Changes) =>
    mounts({ 'identity.assertion': ASSERTION, ...changes }).map(({ assertionAudience }) => assertionAudience)
  const legal = { 'upstreams.legal': LEGAL }
  const research = { 'agents.research': RESEARCH }
  t.same(audiences({}), [undefined])
  t.same(audiences({ upstream: undefined, ...legal }), [undefined])
  t.same(audiences({ upstream: undefined, ...research }), [undefined])
  t.same(audiences({ ...legal, ...research }), [undefined, 'agents/legal', 'agents/research'])
  t.same(audiences({ upstream: undefined, ...legal, ...research }), ['agents/legal', 'agents/research'])
  const said = { 'upstreams.legal': { ...LEGAL, assertionAudience: 'law' } }
  t.same(audiences({ ...said, ...research }), [undefined, 'law', 'agents/research'])
  t.same(audiences({ upstream: undefined, ...said }), ['law'])
  t.same(
    mounts({ ...legal, ...research }).map(({ assertionAudience }) => assertionAudience),
    [undefined, undefined, undefined],
  )
  t.end()
})

void test('two upstreams with one audience draw a warning', (t) => {
  const warned = (changes: Changes) =>
    accepted({ 'identity.assertion': ASSERTION, 'upstreams.legal': LEGAL, 'agents.a': RESEARCH, ...changes }).warnings
  const legal = (assertionAudience: string) => ({ 'upstreams.legal': { ...LEGAL, assertionAudience } })
  const agent = (assertionAudience: string) => ({ 'agents.a': { ...RESEARCH, assertionAudience } })
  t.same(warned({}), [])
  t.same(warned({ ...legal('law'), ...agent('research') }), [])
  t.match(warned(legal('agents')), [
    { path: 'upstreams.legal.assertionAudience', message: /audience of upstream:/, hint: /its own/ },
  ])
  t.match(warned({ ...legal('x'), ...agent('x') }), [
    { path: 'agents.a.assertionAudience', message: /audience of upstreams\.legal:/ },
  ])
  t.match(warned(legal('agents/a')), [{ path: 'agents.a.assertionAudience', message: /audience of upstreams\.legal:/ }])
  t.equal(warned({ ...legal('agents'), ...agent('agents') }).length, 2)
  t.match(
    warned({ ...legal('x'), ...agent('x'), 'identity.assertion': undefined }),
    ['upstreams.legal', 'agents.a'].map((place) => {
      return { path: `${place}.assertionAudience`, message: 'has no effect without identity.assertion' }
    }),
    'without assertions the two audiences are alike, and without effect',
  )
  t.end()
})

void test('an agent is not asked for histories that it has not: verify has to be said otherwise', (t) => {
  const fault = { path: 'agents.a.unknownThread', message: /an agent has no history/, hint: /claim or deny/ }
  t.match(faultsIn({ 'ownership.unknownThread': 'verify', 'agents.a': RESEARCH }), [fault])
  t.same(faultPaths({ 'agents.a': { ...RESEARCH, unknownThread: 'verify' } }), ['agents.a.unknownThread'])
  t.end()
})

for (const [one, other] of [
  ['/legal', '/legal'],
  ['/legal', '/legal/agents'],
  ['/legal/agents/a', '/legal'],
  ['/', '/legal'],
  ['/legal', '/'],
] as const) {
  void test(`${one} and ${other} lie within each other: no request may have two upstreams`, (t) => {
    const faults = faultsIn({
      'upstream.publicPath': '/chat',
      'upstreams.legal': { ...LEGAL, publicPath: one },
      'agents.a': { ...RESEARCH, publicPath: other },
    })
    t.ok(faults.some(({ path, message }) => path === 'agents.a.publicPath' && message.includes('lie within each other')))
    t.end()
  })
}

void test('paths that only begin alike are two', (t) => {
  t.equal(mounts({ 'upstream.publicPath': '/chat', 'upstreams.a': { ...LEGAL, publicPath: '/chats' } }).length, 2)
  t.end()
})

void test('a key is a scope and the id of an agent: one of each, and nothing that has a meaning of its own', (t) => {
  t.match(faultsIn({ 'upstreams.a': LEGAL, 'agents.a': RESEARCH }), [{ path: 'agents.a', message: /has the same key/ }])
  for (const key of ['Legal', 'a b', 'a/b', 'a.b', 'run', 'threads', 'constructor', '']) {
    const tree = configuration()
    t.equal(faultPaths(JSON.stringify({ ...tree, agents: { [key]: RESEARCH } })).length > 0, true, key)
    t.equal(faultPaths(JSON.stringify({ ...tree, upstreams: { [key]: LEGAL } })).length > 0, true, key)
  }
  t.end()
})

const at = (port: number, path: string) => ({
  ...LEGAL,
  url: `http://127.0.0.1:${port}`,
  publicPath: path,
  transport: 'multi-route',
})

void test('a scope is given by an upstream that has its own: no chain, no swap', (t) => {
  const b = { ...at(4100, '/b'), scope: 'upstream' }
  t.same(
    mounts({ 'upstreams.b': b, 'upstreams.c': { ...at(4200, '/c'), scope: 'upstream' } }).map(({ scope }) => scope),
    ['', '', ''],
  )
  const chain = faultsIn({ 'upstreams.b': b, 'upstreams.c': { ...at(4200, '/c'), scope: 'b' } })
  t.match(chain, [{ path: 'upstreams.c.scope', message: /of another upstream itself, upstream/, hint: /scope: upstream/ }])
  const swapped = { 'upstreams.b': { ...at(4100, '/b'), scope: 'c' }, 'upstreams.c': { ...at(4200, '/c'), scope: 'b' } }
  t.same(faultPaths(swapped), ['upstreams.b.scope', 'upstreams.c.scope'])
  t.match(faultsIn({ 'upstreams.upstream': at(4100, '/b') }), [{ path: 'upstreams.upstream', message: /has the name/ }])
  t.same(
    mounts({ upstream: undefined, 'upstreams.upstream': at(4100, '/b') }).map(({ scope }) => scope),
    ['upstream'],
  )
  t.end()
})

void test('in one scope, no upstream lets a caller claim what another one would refuse', (t) => {
  const agent = { ...RESEARCH, scope: 'upstream' }
  for (const unknownThread of ['verify', 'deny']) {
    const all = { 'ownership.unknownThread': unknownThread }
    const claiming = faultsIn({ ...all, 'agents.a': { ...agent, unknownThread: 'claim' } })
    t.match(claiming, [{ path: 'agents.a.unknownThread', message: /is claim, and upstream .* open at the other/, hint: /deny/ }])
    t.match(faultsIn({ ...all, 'agents.a': { ...RESEARCH, unknownThread: 'claim' } }), [], 'a scope of its own')
    t.match(faultsIn({ ...all, 'agents.a': { ...agent, unknownThread: 'deny' } }), [])
  }
  t.match(faultsIn({ 'agents.a': agent }), [], 'claim at both')
  t.end()
})

void test('headers of each are looked at, and none of them may be forwarded from callers', (t) => {
  t.same(
    faultPaths({
      'upstreams.legal': { ...LEGAL, headers: { host: 'x' } },
      'agents.a': { ...RESEARCH, headers: { 'x-a': '1', 'X-A': '2' } },
      forwardHeaders: ['x-a'],
    }),
    ['upstreams.legal.headers.host', 'agents.a.headers.X-A', 'forwardHeaders.0'],
  )
  const { warnings } = accepted({
    'upstreams.legal': { ...LEGAL, headers: { 'x-token': 'plain' } },
    'agents.a': { url: 'http://agent.internal' },
  })
  t.match(warnings, [
    { path: 'upstreams.legal.headers.x-token', message: 'looks like a secret in plain text' },
    { path: 'agents.a.url', message: /bypasses the gateway/, hint: /agents\.a\.headers/ },
  ])
  t.end()
})

void test("the gateway's own questions carry no assertion: a runtime that wants one has its transport named", (t) => {
  const assertion = { keyFiles: ['a.pem'], issuer: 'https://chat.example.com', audience: 'agents', replaceAuthorization: true }
  t.same(
    faultPaths({
      'identity.assertion': assertion,
      'upstream.transport': 'multi-route',
      'upstreams.legal': LEGAL,
      'agents.a': RESEARCH,
    }),
    ['upstreams.legal.transport'],
  )
  t.end()
})

for (const [path, fits] of [
  ['/', true],
  ['/awp', true],
  ['/awp/', true],
  ['/a/b.c/', true],
  ['', false],
  ['awp', false],
  ['//', false],
  ['/a//b', false],
  ['/../a', false],
  ['/a?b', false],
] as const) {
  void test(`${JSON.stringify(path)} is ${fits ? 'a' : 'no'} path of an agent`, (t) => {
    if (fits) t.match(mounts({ 'agents.a': { ...RESEARCH, path } })[1], { basePath: path })
    else t.same(faultPaths({ 'agents.a': { ...RESEARCH, path } }), ['agents.a.path'])
    t.end()
  })
}

void test('two upstreams on one backend are an error in every spelling of it, unless they have the same owners', (t) => {
  const legal = (url: string, basePath = '/api/copilotkit', more: object = {}) => ({
    'upstream.url': 'http://localhost:4000',
    'upstreams.legal': { url, basePath, publicPath: '/legal', ...more },
  })
  for (const url of [
    'http://localhost:4000',
    'http://localhost:4000/',
    'http://127.0.0.1:4000',
    'http://127.1:4000',
    'http://[::1]:4000',
    'http://LOCALHOST:4000',
    'http://localhost.:4000',
    'http://0.0.0.0:4000',
    'http://[::ffff:127.0.0.1]:4000',
    'http://legal.localhost:4000',
    'https://localhost:4000',
  ]) {
    t.match(
      faultsIn(legal(url)),
      [{ path: 'upstreams.legal', message: /is the same place as upstream/, hint: /scope: upstream/ }],
      url,
    )
    t.match(mounts(legal(url, '/api/copilotkit', { scope: 'upstream' })), [{ scope: '' }, { key: 'legal', scope: '' }], url)
  }
  t.match(
    faultsIn(legal('http://localhost:4000', '/api/copilotkit', { scope: 'legal' })),
    [{ path: 'upstreams.legal' }],
    'its own key says nothing of that',
  )
  const agents = { 'agents.a': RESEARCH, 'agents.b': { url: 'http://localhost:5000/', path: '/' } }
  t.match(faultsIn(agents), [{ path: 'agents.b', message: /is the same place as agents\.a/, hint: /scope: a / }])
  t.match(mounts({ ...agents, 'agents.b': { ...agents['agents.b'], scope: 'a' } }), [
    {},
    { scope: 'a' },
    { key: 'b', scope: 'a' },
  ])
  t.match(
    faultsIn({ 'agents.a': { url: 'http://127.0.0.1:4000', path: '/api/copilotkit/' }, 'upstream.url': 'http://127.0.0.1:4000' }),
    [{ path: 'agents.a' }],
  )
  t.end()
})

void test('upstreams on one host and port draw a warning, unless it is said which threads are whose', (t) => {
  const warned = (more: object) =>
    accepted({ 'agents.a': RESEARCH, 'agents.b': { ...RESEARCH, path: '/b', ...more } }).warnings.map(({ path }) => path)
  t.same(warned({}), ['agents.b'])
  t.same(warned({ scope: 'a' }), [])
  t.same(warned({ scope: 'b' }), [])
  t.same(accepted({ 'agents.a': RESEARCH, 'agents.b': { url: 'http://127.0.0.1:5001' } }).warnings, [])
  t.end()
})

void test('a scope is that of an upstream that is there', (t) => {
  t.match(faultsIn({ 'upstreams.legal': { ...LEGAL, scope: 'law' } }), [
    { path: 'upstreams.legal.scope', hint: /upstream, legal/ },
  ])
  t.match(faultsIn({ upstream: undefined, 'upstreams.legal': { ...LEGAL, scope: 'upstream' } }), [
    { path: 'upstreams.legal.scope' },
  ])
  t.end()
})
