/**
 * `forwardHeaders` lets caller headers through. Names that the network, the gateway or an agent reads as something that
 * a caller must not choose are refused; other `x-*` names draw a warning, because agents may take them for identity.
 */
import { test } from 'tap'
import { accepted, faultsIn } from '../../testing/support/configuration.ts'

const REFUSED = {
  'ends at every hop': ['Connection', 'keep-alive', 'TE', 'Transfer-Encoding', 'upgrade', 'proxy-authorization', 'trailer'],
  'is never taken from a caller': [
    'Host',
    'content-length',
    'Cookie',
    'Forwarded',
    'X-Real-IP',
    'expect',
    'range',
    'Accept-Encoding',
    'content-encoding',
  ],
  'asks for an answer out of a cache': ['If-None-Match', 'if-modified-since'],
  'is reserved': [
    'x-forwarded-for',
    'X-Forwarded-Host',
    'x-original-url',
    'x-rewrite-url',
    'x-http-method',
    'X-HTTP-Method-Override',
    'x-cpki-user',
    'x-threadwarden-user',
  ],
  'is set by upstream.headers': ['X-Service-Token'],
  'is not a header name, or has a "_"': ['x_user', '', 'a b', 'naïve', 'a:b', 'x-user\n'],
}

for (const [reason, names] of Object.entries(REFUSED)) {
  for (const name of names) {
    void test(`forwarding ${JSON.stringify(name)} is refused: it ${reason}`, (t) => {
      const faults = faultsIn(
        { forwardHeaders: ['accept', name], 'upstream.headers': { 'x-service-token': '${env:T}' } },
        { environment: { T: 'x' } },
      )
      t.match(faults, [{ path: 'forwardHeaders.1', message: `${name} ${reason}`, hint: 'remove it' }])
      t.end()
    })
  }
}

void test('other x- names pass with a warning', (t) => {
  const { config, warnings } = accepted({ forwardHeaders: ['X-User-Id', 'x-tenant', 'baggage'] })
  t.same(config.forwardHeaders, ['X-User-Id', 'x-tenant', 'baggage'])
  t.match(warnings, [
    { path: 'forwardHeaders.0', message: 'agents may read X-User-Id as identity, but callers choose its value' },
    { path: 'forwardHeaders.1', message: /^agents may read x-tenant as identity/ },
  ])
  t.equal(warnings.length, 2, 'and no other name draws one')
  t.end()
})

void test('naming what passes anyway draws a warning', (t) => {
  const names = ['accept', 'Accept-Language', 'authorization', 'content-type', 'user-agent', 'traceparent', 'tracestate']
  const { warnings } = accepted({ forwardHeaders: names })
  t.same(
    warnings.map(({ message }) => message),
    names.map((name) => `${name} is forwarded by default`),
  )
  t.end()
})
