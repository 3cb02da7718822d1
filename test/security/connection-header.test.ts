/**
 * `Connection` names headers that end at this hop, and a caller may name any: proxies that strip what it names after they have set
 * theirs lose their own (@fastify/reply-from CVE-2026-33805, Fabio CVE-2025-48865). The gateway writes the upstream's headers from
 * nothing, so nothing that a caller writes takes one away; and what is meant for this hop ends here (RFC 9110 §7.6.1).
 */
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { json } from '../../testing/support/upstream.ts'

const TARGET = '/api/copilotkit/info'

/** What arrives of an honest request, with a body and without. */
const NAMED = [
  'authorization',
  'x-service-token',
  'x-tenant',
  'x-request-id',
  'host',
  'content-length',
  'content-type',
  'accept',
  'accept-encoding',
  'user-agent',
  'traceparent',
]

/** Ways to name them all. */
const CONNECTIONS: Readonly<Record<string, readonly string[]>> = {
  'in one line': [`Connection: close, ${NAMED.join(', ')}`],
  'without spaces': [`Connection: close,${NAMED.join(',')}`],
  'in capitals': [`CONNECTION: CLOSE, ${NAMED.join(', ').toUpperCase()}`],
  'in a line each': ['Connection: close', ...NAMED.map((name) => `Connection: ${name}`)],
  'before the others': [`Connection: ${NAMED.join(', ')}, close`],
  'with empty members': [`Connection: ,, close ,,${NAMED.join(' ,, ')},`],
  'in Proxy-Connection': [`Proxy-Connection: ${NAMED.join(', ')}`],
  'in Keep-Alive': [`Keep-Alive: ${NAMED.join(', ')}`],
  'in Trailer': [`Trailer: ${NAMED.join(', ')}`],
  'in TE': [`TE: trailers, ${NAMED.join(', ')}`],
  'in Connection_': [`Connection_: ${NAMED.join(', ')}`],
  'within quotes': [`Connection: close, "${NAMED.join('", "')}"`],
  'a name of an odd form': ['Connection: close, authorization;q=1, x-service-token=, @, constructor, __proto__'],
}

const CONFIG = {
  forwardHeaders: ['x-tenant'],
  upstream: { headers: { 'x-service-token': 'service' } },
}

const OWN_LINES = ['X-Tenant: one', 'Accept: text/plain', 'User-Agent: chat/1', 'Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'] // oxfmt-ignore

void testFirstPair('names in Connection take nothing away that the gateway sets or lets through', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, json({}), { pair, config: CONFIG })
  const body = JSON.stringify(runInput('t1'))
  for (const request of [{ target: TARGET }, { target: '/api/copilotkit/agent/default/run', body }]) {
    const honest = await gateway.ask({ ...request, token: alice, lines: OWN_LINES })
    t.equal(honest.status, 200)
    const wanted = upstream.requests.at(-1)
    for (const name of NAMED) {
      if ('body' in request || !name.startsWith('content-')) t.ok(wanted?.headers.has(name), `${name} is there to be taken away`)
    }
    for (const [how, lines] of Object.entries(CONNECTIONS)) {
      t.equal((await gateway.ask({ ...request, token: alice, lines: [...OWN_LINES, ...lines] })).status, 200, how)
      const got = upstream.requests.at(-1)
      for (const name of NAMED) {
        // The request id is another one, and so is the body's run id; its length is the same.
        if (name === 'x-request-id') t.match(got?.headers.get(name), [/^[0-9a-f-]{36}$/])
        else t.same(got?.headers.get(name), wanted?.headers.get(name), `${name}, named ${how}`)
      }
      t.same(got?.headers.get('connection'), ['keep-alive'], 'the connection is the gateway’s own')
      t.same(got?.json, wanted?.json)
    }
  }
})

void testFirstPair('nor does naming one get a request past the gate', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair, config: CONFIG })
  for (const [how, lines] of Object.entries(CONNECTIONS)) {
    t.equal((await gateway.ask({ target: TARGET, lines })).status, 401, how)
    const twice = [...lines, `Authorization: Bearer ${alice}`]
    t.equal((await gateway.ask({ target: TARGET, token: alice, lines: twice })).status, 400, `${how}, and two credentials`)
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('hop-by-hop headers end here, whether Connection names them or not', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  const hop = [
    'Keep-Alive: timeout=1, max=1',
    'Proxy-Authorization: Basic eDp5',
    'Proxy-Authenticate: Basic',
    'Proxy-Authentication-Info: x',
    'Proxy-Connection: keep-alive',
    'TE: trailers, deflate',
    'Trailer: X-T',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAAQAAP__',
    'X-Hop: 1',
    'Max-Forwards: 0',
    'Via: 1.1 other',
    'Close: 1',
  ]
  const names = hop.map((line) => line.slice(0, line.indexOf(':')))
  for (const connection of [[], [`Connection: ${names.join(', ')}`], ['Connection: close'], ['Connection: keep-alive']]) {
    t.equal((await gateway.ask({ target: TARGET, token: alice, lines: [...hop, ...connection] })).status, 200)
    t.same([...(upstream.requests.at(-1)?.headers.keys() ?? [])].sort(), ['accept-encoding', 'authorization', 'connection', 'host', 'x-request-id']) // oxfmt-ignore
    t.same(upstream.requests.at(-1)?.headers.get('connection'), ['keep-alive'])
  }
})

void testFirstPair('what the upstream names in its Connection ends here as well', async (t, pair) => {
  const { gateway, alice } = await gated(t, (_request, response) => {
    const headers = { connection: 'close, x-hop', 'x-hop': '1', 'keep-alive': 'timeout=9', 'proxy-authenticate': 'Basic', 'x-end': '1' }
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end('{}')
  }, { pair }) // oxfmt-ignore
  // Not /info, which is written anew for a client of the other transport.
  const body = JSON.stringify(runInput('t1'))
  const answer = await gateway.ask({ target: '/api/copilotkit/agent/default/run', token: alice, body })
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('x-end'), '1')
  for (const name of ['x-hop', 'proxy-authenticate']) t.notOk(answer.headers.has(name), name)
  t.not(answer.headers.get('keep-alive'), 'timeout=9')
})
