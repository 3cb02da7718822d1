/**
 * A request line without a version is HTTP/0.9 to some parsers, node's among them: no Host is asked for then, a server
 * behind may read another request, and a header block may follow all the same (RFC 9112 §2.3, RFC 1945 §4.1). HAProxy took
 * single words for such requests until its fix "reject malformed HTTP/0.9 requests"; this gateway served them, to holders
 * of a good token, until it looked at the version.
 */
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'

const BASE = '/api/copilotkit'

void testFirstPair('versions other than 1.0 and 1.1 reach nothing, with the best of tokens', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, undefined, { pair })
  for (const version of [
    '',
    'HTTP/0.9',
    'HTTP/1.2',
    'HTTP/1.9',
    'HTTP/2.0',
    'HTTP/3.0',
    'HTTP/9.9',
    'http/1.1',
    'HTTPS/1.1',
    'HTTP/1',
    'HTTP/1.10',
  ]) {
    for (const host of ['gateway.example', null]) {
      const info = await gateway.ask({ target: `${BASE}/info`, version, host, token: alice })
      t.match(info, { status: 400, body: '"code":"header-malformed"' }, `info ${version}`)
      const body = JSON.stringify(runInput('t1'))
      const run = await gateway.ask({ target: `${BASE}/agent/default/run`, version, host, token: alice, body })
      t.match(run, { status: 400, body: '"code":"header-malformed"' }, `run ${version}`)
    }
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('1.0 and 1.1 are served', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, undefined, { pair })
  t.equal((await gateway.ask({ target: `${BASE}/info`, token: alice })).status, 200)
  t.equal((await gateway.ask({ target: `${BASE}/info`, version: 'HTTP/1.0', host: null, token: alice })).status, 200)
  t.same(
    upstream.requests.map((request) => request.target),
    [`${BASE}/info`, `${BASE}/info`],
  )
})
