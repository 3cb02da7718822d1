/** Every default, written out as the design lists them: what is left out of a file must mean the same tomorrow. */
import { test } from 'tap'
import { accepted } from '../../testing/support/configuration.ts'

void test('what is left out has the documented value', (t) => {
  const { config, warnings } = accepted({
    'ownership.store': 'sqlite:/somewhere/ownership.db',
    'audit.file': '/somewhere/audit.jsonl',
  })
  t.strictSame(config, {
    version: 1,
    listen: { host: '0.0.0.0', port: 8080, trustedProxies: [], publicOrigins: [] },
    health: { host: '0.0.0.0', port: 8081 },
    enforcement: 'enforce',
    upstream: {
      url: 'http://127.0.0.1:4000',
      basePath: '/api/copilotkit',
      transport: 'auto',
      userScoped: false,
      forwardAuthorization: true,
      forwardCookies: [],
      headers: {},
      timeouts: { connect: 2000, headers: 120_000, body: 0 },
    },
    upstreams: {},
    agents: {},
    forwardHeaders: [],
    cors: { origins: [], credentials: false },
    authentication: {
      mode: 'required',
      clockTolerance: 30_000,
      tokenCache: 10_000,
      issuers: {
        corp: {
          issuer: 'https://login.example.com/',
          audiences: ['chat'],
          audienceClaim: '/aud',
          algorithms: ['RS256'],
          credential: {},
          insecureHttp: false,
          keyCache: 600_000,
          staleIfError: 86_400_000,
          requiredClaims: {},
          claims: { id: '/sub', name: '/name', role: '/role', permissions: '/permissions', groups: '/groups' },
        },
      },
    },
    identity: { headers: {} },
    ownership: {
      store: 'sqlite:/somewhere/ownership.db',
      unknownThread: 'claim',
      lists: 'upstream',
      retention: { deleted: 'off' },
    },
    streams: { tokenExpiry: 'grace', grace: 600_000, keepAlive: 15_000 },
    limits: {
      body: 1_048_576,
      runBody: 67_108_864,
      bodiesInFlight: 536_870_912,
      bodyMembers: 10_000,
      headers: 16_384,
      newThreads: [{ amount: 60, per: 60_000 }],
      requests: [{ amount: 1200, per: 60_000 }],
      grants: [{ amount: 60, per: 60_000 }],
      runs: 'off',
      streams: 'off',
      tokens: [],
      sendTimeout: 60_000,
    },
    workers: 1,
    shutdown: { delay: 5000 },
    audit: { to: 'off', file: '/somewhere/audit.jsonl', interruptContent: false },
    log: { level: 'info' },
  })
  t.match(warnings, [{ path: 'audit.file' }], 'of the file, which has no effect here, and of nothing else')
  t.equal(warnings.length, 1)
  t.end()
})

void test('the store and the record of decisions are in data/ beside the file', (t) => {
  const { config } = accepted({})
  t.match(config.ownership.store, /^sqlite:\/.+\/data\/ownership\.db$/)
  t.match(config.audit.file, /^\/.+\/data\/audit\.jsonl$/)
  t.end()
})

void test('a section that is there in part keeps the other defaults', (t) => {
  const { config } = accepted({
    'listen.port': 9000,
    'upstream.timeouts': { body: '1m' },
    'authentication.issuers.corp.claims': { id: '/oid' },
  })
  t.same(config.listen, { host: '0.0.0.0', port: 9000, trustedProxies: [], publicOrigins: [] })
  t.same(config.upstream?.timeouts, { connect: 2000, headers: 120_000, body: 60_000 })
  t.same(config.authentication.issuers['corp']?.claims, {
    id: '/oid',
    name: '/name',
    role: '/role',
    permissions: '/permissions',
    groups: '/groups',
  })
  t.end()
})

void test('the values that the design writes down are the defaults', (t) => {
  const spelled = accepted({
    'listen.port': 8080,
    'health.port': 8081,
    enforcement: 'enforce',
    'upstream.transport': 'auto',
    'upstream.timeouts': { connect: '2s', headers: '120s', body: '0s' },
    'authentication.clockTolerance': '30s',
    'ownership.lists': 'upstream',
    streams: { grace: '10m', keepAlive: '15s' },
    limits: {
      body: '1MiB',
      runBody: '64MiB',
      bodiesInFlight: '512MiB',
      headers: '16KiB',
      newThreads: '60/m',
      requests: '1200/m',
      grants: '60/m',
    },
    'log.level': 'info',
    'ownership.store': 'sqlite:/x',
    'audit.file': '/x.jsonl',
  })
  t.strictSame(spelled.config, accepted({ 'ownership.store': 'sqlite:/x', 'audit.file': '/x.jsonl' }).config)
  t.end()
})
