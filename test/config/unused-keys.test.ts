/** A key without effect draws a warning: its author believes that it does something, for example that there is an audit log. */
import { test } from 'tap'
import { accepted, type Changes } from '../../testing/support/configuration.ts'

const ISSUER = { issuer: 'https://login.example.com/', audiences: ['chat'] }
const ASSERTION = { keyFiles: ['key.pem'], issuer: 'https://chat.example.com', audience: 'agents' }
const INTROSPECTION = { url: 'https://login.example.com/introspect', clientId: 'gateway', clientSecret: '${env:SECRET}' }
const LEGAL = { url: 'http://127.0.0.1:4100', basePath: '/legal', publicPath: '/legal' }

for (const [what, changes, path, effective] of [
  ['an audit file without to: file', { audit: { file: 'a.jsonl' } }, 'audit.file', { 'audit.to': 'file' }],
  ['the default audit file without to', { audit: { file: './data/audit.jsonl' } }, 'audit.file', { 'audit.to': 'file' }],
  [
    'content of answers without an audit',
    { audit: { interruptContent: true } },
    'audit.interruptContent',
    { 'audit.to': 'stdout' },
  ],
  [
    'a grace without tokenExpiry: grace',
    { streams: { tokenExpiry: 'close', grace: '1m' } },
    'streams.grace',
    { 'streams.tokenExpiry': 'grace' },
  ],
  [
    'credentials without origins',
    { cors: { credentials: true } },
    'cors.credentials',
    { 'cors.origins': ['https://a.example.com'] },
  ],
  ['issuers of nobody', { 'authentication.mode': 'off' }, 'authentication.issuers', { 'authentication.mode': 'optional' }],
  [
    'a key cache without keys to fetch',
    issuer({ ...ISSUER, introspection: INTROSPECTION, keyCache: '1m' }),
    'authentication.issuers.corp.keyCache',
    issuer({ ...ISSUER, algorithms: ['RS256'], keyCache: '1m' }),
  ],
  ['a CA of a runtime without TLS', { 'upstream.ca': 'ca.pem' }, 'upstream.ca', { 'upstream.url': 'https://127.0.0.1:4000' }],
  [
    'an audience without assertions',
    { 'upstreams.legal': { ...LEGAL, assertionAudience: 'legal' } },
    'upstreams.legal.assertionAudience',
    { 'identity.assertion': ASSERTION },
  ],
  [
    'a header beside Authorization',
    { 'upstream.transport': 'multi-route', 'identity.assertion': { ...ASSERTION, header: 'x-who', replaceAuthorization: true } },
    'identity.assertion.header',
    { 'identity.assertion': { ...ASSERTION, header: 'x-who' } },
  ],
  [
    'a forwarded header that is replaced',
    {
      'upstream.transport': 'multi-route',
      'upstream.forwardAuthorization': true,
      'identity.assertion': { ...ASSERTION, replaceAuthorization: true },
    },
    'upstream.forwardAuthorization',
    { 'identity.assertion': ASSERTION },
  ],
  ['a shadow of the same policy', { policy: 'p.yaml', shadowPolicy: 'p.yaml' }, 'shadowPolicy', { shadowPolicy: 'other.yaml' }],
] as const) {
  void test(`${what} draws a warning`, (t) => {
    const found = unused(changes)
    t.match(found, [{ path, message: /^has no effect /, hint: /./, line: Number }])
    t.equal(found.length, 1)
    t.same(unused({ ...changes, ...effective }), [], 'and none where it has an effect')
    t.end()
  })
}

void test('a configuration that says nothing of the kind draws none, nor one with the documented default beside to: off', (t) => {
  t.same(unused({}), [])
  t.same(unused({ audit: { to: 'off', file: './data/audit.jsonl' } }), [])
  t.end()
})

function issuer(corp: object): Changes {
  return { 'authentication.issuers': { corp } }
}

function unused(changes: Changes) {
  const { warnings } = accepted(changes, { environment: { SECRET: 'secret of the gateway' } })
  return warnings.filter(({ message }) => message.startsWith('has no effect'))
}
