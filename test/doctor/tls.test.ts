/** An upstream behind TLS: a certificate that nobody vouches for is told apart from a server that is away. */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { INFO } from '../../testing/support/upstream.ts'
import { CERTIFICATE, KEY } from './certificate.ts'
import { examined } from './examination.ts'

/** An upstream whose certificate is signed by nobody but itself. */
async function start(t: Test): Promise<{ readonly url: string; readonly ca: string }> {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const ca = join(folder, 'ca.pem')
  writeFileSync(ca, CERTIFICATE)
  const server = createServer({ key: KEY, cert: CERTIFICATE }, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(INFO))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, ca }
}

void test('a certificate that nobody vouches for is a problem, and upstream.tls.ca its remedy', async (t) => {
  const { url, ca } = await start(t)
  const without = await examined(t, { 'upstream.url': url })
  t.match(without.of('upstream.reachable'), {
    level: 'problem',
    message: /certificate of .* is not trusted \(DEPTH_ZERO/,
    remedy: /upstream\.tls\.ca/,
  })
  const withCa = await examined(t, { 'upstream.url': url, 'upstream.ca': ca })
  t.match(withCa.of('upstream.reachable'), { level: 'ok' })
})

void test('nor may it be for another host', async (t) => {
  const { url, ca } = await start(t)
  const { of } = await examined(t, { 'upstream.url': url.replace('127.0.0.1', 'localhost'), 'upstream.ca': ca })
  t.match(of('upstream.reachable'), { level: 'problem', message: /ERR_TLS_CERT_ALTNAME_INVALID/ })
})

void test('nor may the certificate of the named address of the gateway', async (t) => {
  const { url } = await start(t)
  const { of } = await examined(t, {}, { wishes: { url: `${url}/api/copilotkit` } })
  t.match(of('gateway.authentication'), {
    level: 'problem',
    message: /certificate of .* is not trusted \(DEPTH_ZERO/,
    remedy: /NODE_EXTRA_CA_CERTS/,
  })
})
