/** `upstream.headers` win over the caller's and arrive once: so they stand there once, well-formed, and secrets not in plain. */
import { test } from 'tap'
import { accepted, faultsIn } from '../../testing/support/configuration.ts'

const headers = (values: Record<string, string>) => ({ 'upstream.headers': values })

void test('a name twice in different case is refused', (t) => {
  t.match(faultsIn(headers({ 'x-tenant': 'a', 'X-Tenant': 'b' })), [
    { path: 'upstream.headers.X-Tenant', message: 'is set twice', hint: 'header names know no case' },
  ])
  t.end()
})

void test('what the gateway sets itself is refused', (t) => {
  for (const name of [
    'Host',
    'content-length',
    'Content-Type',
    'transfer-encoding',
    'Connection',
    'Accept-Encoding',
    'expect',
    'TE',
    'upgrade',
  ]) {
    t.match(faultsIn(headers({ [name]: 'a' })), [{ path: `upstream.headers.${name}`, message: 'is set by the gateway itself' }])
  }
  t.end()
})

void test('names and values that are none are refused', (t) => {
  for (const name of ['', 'a b', 'x-tenant:', 'x_tenant', 'ü'])
    t.match(faultsIn(headers({ [name]: 'a' })), [{ path: `upstream.headers.${name}` }])
  for (const value of ['a\nb', 'a\r\nx: y', 'a\0', 'ü']) {
    t.match(faultsIn(headers({ 'x-tenant': value })), [{ path: 'upstream.headers.x-tenant', message: 'is not a header value' }])
  }
  t.end()
})

void test('a line break that a secret brings along is refused as well', (t) => {
  const around = { environment: { TOKEN: 'abc\r\nx-user: eve' } }
  const faults = faultsIn(headers({ 'x-token': '${env:TOKEN}' }), around)
  t.match(faults, [{ path: 'upstream.headers.x-token', message: 'is not a header value' }])
  t.notMatch(JSON.stringify(faults), /abc/, 'and the fault does not tell it')
  t.end()
})

void test('what is called like a secret and stands in plain draws a warning that does not tell it', (t) => {
  for (const name of ['authorization', 'X-Service-Token', 'x-api-key', 'x-secret', 'x-password', 'x-credential']) {
    const { warnings } = accepted(headers({ [name]: 'hunter2' }))
    t.match(warnings, [{ path: `upstream.headers.${name}`, message: 'looks like a secret in plain text', hint: /\$\{file:/ }])
    t.notMatch(JSON.stringify(warnings), /hunter2/)
  }
  t.end()
})

void test('a secret by reference draws none, and neither does what is no secret', (t) => {
  const { warnings } = accepted(headers({ authorization: 'Bearer ${env:TOKEN}', 'x-tenant': 'acme' }), {
    environment: { TOKEN: 'x' },
  })
  t.same(warnings, [])
  t.end()
})
