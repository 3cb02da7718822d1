/**
 * Credentials where people look who should not have them: in log lines (CWE-532; paperless-ai logged whole Authorization headers
 * with its errors, clusterzx/paperless-ai issue 966), in an answer, in /readyz, or in a metric, where a label that a caller chooses
 * also fills the memory. Whatever goes wrong, no token, cookie, configured secret or word of a chat is in any of them, and no
 * label holds an id.
 */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { call, runInput } from '../../testing/support/client.ts'
import { gateBefore, gated, NOWHERE, type Gated } from '../../testing/support/gated.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { openRaw, sendRaw, type RawRequest } from '../../testing/support/raw.ts'
import { events, INFO, json, type Answering } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { REASONS } from '../../src/core/reasons.ts'
import { packageVersion } from '../../src/observe/version.ts'
import { ROUTE_IDS } from '../../src/core/route/all-routes.ts'
import { BASE, BODY_ROUTES, PATH_ROUTES, run } from './thread-routes.ts'

/** What no line, answer or figure may hold: every part of every token, and whatever is called a secret below. */
function secretsOf(tokens: readonly string[]): string[] {
  const parts = tokens.flatMap((token) => [token, ...token.split('.').slice(1)])
  return [...new Set(parts), 'secret', 'my-words', 'their-words']
}

const HEADERS = [
  'Cookie: session=cookie-secret',
  'X-Api-Key: key-secret',
  'X-Tenant: tenant-secret',
  'X-Forwarded-For: address-secret',
  'Proxy-Authorization: Basic proxy-secret',
  'X-Cpki-User-Id: user-secret',
  'Referer: https://a.example/?token=referer-secret',
  'User-Agent: agent-secret',
]

/** Requests that go wrong in many ways, each with secrets wherever one may stand. */
function requests(token: string): readonly RawRequest[] {
  const body = JSON.stringify(
    runInput('t1', 'my-words', { state: { a: 'state-secret' }, forwardedProps: { toolChoice: 'prop-secret' } }),
  )
  const target = `${BASE}/agent/default/run`
  return [
    { target, body, token },
    { target: `${target}?access_token=query-secret&token=${token}`, body, token },
    { target: `${BASE}/info?api_key=query-secret`, token },
    { target: `${BASE}/path-secret`, token },
    { target: `/${token}`, token },
    { target: `${BASE}/threads/${token}/messages`, token },
    { target: `${BASE}/threads?cursor=${token}`, token },
    { target: `${BASE}/threads/t1/messages;token=path-secret`, token },
    { target, body: body.slice(0, -1), token },
    { target, body: JSON.stringify(runInput(token, 'my-words')), token },
    { target, body: JSON.stringify({ ...runInput('t1'), threadId: 'state-secret.' }), token },
    { target, body, token, framing: [`Content-Type: text/secret`, `Content-Length: ${body.length}`] },
    { target: BASE, body: JSON.stringify({ method: 'secret', params: { token } }), token },
    { target, body, token: `${token}x` },
    { target, body, token: token.slice(0, -4) },
    { target, body, lines: [`Authorization: bearer ${token}`] },
    { target, body, lines: [`Authorization: Basic basic-secret`] },
    { target, body, lines: [`Authorization: Bearer ${token}, Bearer ${token}`] },
    { target, body, token, lines: [`Authorization: Bearer ${token}`] },
    { target, body, lines: [`Authorization: ${token}`] },
    { target, body, lines: [`Authorisation: Bearer ${token}`, `X-Authorization: ${token}`] },
    { target, body, token, lines: ['Origin: https://secret.example'] },
    { method: 'SECRET', target, token },
    { target, body, token, lines: ['secret line without a colon'] },
    { target, body, token, lines: [`X-Long: ${'secret'.repeat(5000)}`] },
    { target, body, token, version: 'SECRET/1.1' },
    { target: `http://user:secret@host${target}`, token },
  ]
}

const requestLines = ({ gateway }: Gated) => gateway.lines.filter((line) => line['msg'] === 'request')

void testFirstPair(
  'no log line, answer, metric or readiness has a token, a cookie, a secret or chat text, in any failure',
  async (t, pair) => {
    const { place } = pair
    const gate = await gated(t, json({ mine: true }), {
      pair,
      config: {
        upstream: { headers: { 'x-service-token': 'service-secret' } },
        forwardHeaders: ['x-tenant'],
        cors: { origins: ['https://chat.example'] },
      },
    })
    const { gateway, alice, bob, signer, upstream } = gate
    const tokens = [
      alice,
      bob,
      signer.sign('alice', { exp: 1000 }),
      signer.sign('', {}),
      signer.sign('alice', { iss: 'https://secret.example' }),
    ]
    const told: string[] = []
    let sent = 0
    const answers: Record<string, Answering> = {
      'an answer': json({ mine: true }),
      'an error': (_request, response) => void response.writeHead(500, { 'content-type': 'text/html' }).end('their-words secret'),
      'a redirect': (_request, response) => void response.writeHead(302, { location: 'https://a.example/?secret' }).end('secret'),
      'no list': json({ threads: 'none' }),
      nothing: (_request, response) => void response.destroy(),
    }
    for (const answering of Object.values(answers)) {
      upstream.answer(answering)
      for (const token of tokens) {
        const all = requests(token)
        const texts = await Promise.all(
          all.map((one) => sendRaw(gateway.url, gateway.bytes({ ...one, lines: [...HEADERS, ...(one.lines ?? [])] }))),
        )
        told.push(...texts)
        sent += all.length
      }
    }
    const database = new Database(join(gateway.folder, 'ownership.db'))
    t.teardown(() => database.close())
    database.exec('ALTER TABLE threads RENAME TO gone')
    for (const { to } of [...PATH_ROUTES, ...BODY_ROUTES]) {
      told.push(await sendRaw(gateway.url, gateway.bytes({ ...to('t1'), token: alice, lines: HEADERS })))
      sent += 1
    }
    // In process the server in front answers some of them, and writes no line of ours.
    await until(() => place === 'in-process' || requestLines(gate).length === sent)
    const places: Record<string, string> = {
      'the log': JSON.stringify(gateway.lines),
      'the answers': told.join(''),
      'the figures': (await call(`${gateway.healthUrl}/metrics`)).text,
      readiness: (await call(`${gateway.healthUrl}/readyz`)).text,
    }
    for (const [place, text] of Object.entries(places)) {
      for (const secret of secretsOf(signer.signed)) t.notOk(text.includes(secret), `${place}: ${secret.slice(0, 30)}`)
    }
    const mine = upstream.requests.find(({ headers }) => headers.get('authorization')?.[0] === `Bearer ${alice}`)
    t.same(mine?.headers.get('x-service-token'), ['service-secret'], 'the upstream has what it needs')
    t.ok(places['the log']!.includes('corp:alice'), 'and the log says who it was')
  },
)

void testFirstPair('a stream that is cut, and an upstream that is gone, tell no more', async (t, pair) => {
  const dead = await gateBefore(t, NOWHERE, { pair, config: { upstream: { headers: { 'x-service-token': 'service-secret' } } } })
  const text = await sendRaw(dead.gateway.url, dead.gateway.bytes({ target: `${BASE}/info`, token: dead.alice, lines: HEADERS }))
  t.match(text, /^HTTP\/1\.1 502 /)
  t.notMatch(text, /secret|127\.0\.0\.1|ECONNREFUSED/)
  const live = await gated(
    t,
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: their-words\n\n')
    },
    { pair },
  )
  const connection = await openRaw(live.gateway.url)
  const body = JSON.stringify(runInput('t1', 'my-words'))
  connection.write(live.gateway.bytes({ target: `${BASE}/agent/default/run`, token: live.alice, body, lines: HEADERS }))
  await connection.until('their-words')
  connection.destroy()
  await until(() => requestLines(live).length === 1 && requestLines(dead).length === 1)
  const log = JSON.stringify([...live.gateway.lines, ...dead.gateway.lines])
  for (const secret of secretsOf([live.alice, dead.alice])) t.notOk(log.includes(secret), secret.slice(0, 30))
})

/** Label names and values of our own figures. */
async function labels({ gateway }: Gated): Promise<Set<string>> {
  const { text } = await call(`${gateway.healthUrl}/metrics`)
  const own = text.split('\n').filter((line) => line.startsWith('threadwarden_'))
  return new Set(own.flatMap((line) => [...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => `${name}=${value}`)))
}

void testFirstPair('labels are of closed lists, and no number of users, threads and words makes one more', async (t, pair) => {
  const gate = await gated(t, events(), { pair })
  const { gateway, signer } = gate
  const visit = async (who: string): Promise<void> => {
    const token = signer.sign(who)
    t.equal(await run(gateway, token, `thread-of-${who}`), 200)
    const body = JSON.stringify(
      runInput(`thread-of-${who}`, 'my-words', { [`key-${who}`]: 1, forwardedProps: { [`prop-${who}`]: 1 } }),
    )
    for (const request of [
      { target: `${BASE}/agent/agent-${who}/run?query-${who}=1`, body },
      { target: `${BASE}/path-${who}` },
      { target: `${BASE}/threads/thread-of-other/messages`, lines: [`X-Header-${who}: 1`, `Origin: https://${who}.example`] },
      { target: `${BASE}/threads?agentId=agent-${who}` },
      { method: `M${who.toUpperCase()}`, target: `${BASE}/info` },
      { target: `/${who}/../x` },
    ]) {
      await sendRaw(gateway.url, gateway.bytes({ ...request, token }))
    }
  }
  await visit('zoe')
  const before = await labels(gate)
  for (let at = 0; at < 10; at += 1) await visit(`user${at}`)
  t.same([...(await labels(gate))].sort(), [...before].sort())
  // oxfmt-ignore
  const closed = new Set([
    ...['none', ...ROUTE_IDS].map((id) => `route=${id}`), ...['permitted', ...Object.keys(REASONS)].map((reason) => `reason=${reason}`),
    ...['new', 'released', 'lost-race'].map((outcome) => `outcome=${outcome}`), 'kind=body-key', 'kind=query-name', 'issuer=corp',
    'upstream=', `version=${INFO.version}`, 'tested=yes',
    ...['2xx', '4xx', '5xx'].map((status) => `status_class=${status}`), 'engine=sqlite', `version=${packageVersion()}`, `node=${process.version}`,
    ...['access', 'claim', 'settle', 'change', 'delete', 'list', 'grant', 'observe', 'revocation', 'unconfirmed'].map((name) => `operation=${name}`),
    ...['idle-closed', 'refused'].map((outcome) => `outcome=${outcome}`), 'reason=complete', 'condition=keys:corp', 'condition=upstream', 'condition=store',
    ...['bodies', 'reading', 'answers'].map((use) => `use=${use}`),
  ])
  const isBound = (label: string): boolean => /^le=(?:[\d.]+|\+Inf)$/.test(label)
  t.same(
    [...before].filter((label) => !closed.has(label) && !isBound(label)),
    [],
  )
  t.ok(before.has('route=agent/run') && before.has('reason=permitted'))
  const { text, headers } = await call(`${gateway.healthUrl}/metrics`)
  t.match(headers.get('content-type'), /^text\/plain/)
  for (const word of ['zoe', 'user1', 'thread-of', 'key-', 'prop-', 'agent-', 'path-', 'my-words', 'corp:'])
    t.notOk(text.includes(word), word)
})
