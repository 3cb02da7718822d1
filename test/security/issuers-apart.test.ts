/**
 * One issuer speaking for another's users. A key id or a subject is unique within one issuer only; whoever looks keys up by
 * `kid` alone, names users by `sub` alone or compares issuers loosely makes two people one. Here a token is verified by the
 * keys of the one issuer whose name it carries to the letter, and that issuer's key stands in the user id for ever.
 *
 * RFC 8725 §3.8 and OpenID Connect Core 1.0 §5.7 (only `iss` and `sub` together name a user); CVE-2024-53861 (PyJWT,
 * a part of the issuer's name was enough); RFC 7519 §4 (a claim that stands twice).
 */
import { test, type Test } from 'tap'
import { gate, heard, ISSUER, rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { guarded, PASSED, REFUSED, type Guarded } from '../../testing/support/guarded.ts'
import { runInput } from '../../testing/support/client.ts'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { MULTI_ROUTE, type Pair } from '../../testing/support/pair.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { owners } from '../../testing/support/rows.ts'
import { claims, jwkOf, PAIRS, pemOf, signedAs, token, type Part } from '../../testing/support/signing.ts'
import { events, json } from '../../testing/support/upstream.ts'

const OTHER = 'https://other.example'
const corpKey = { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) }
const otherKey = { issuer: OTHER, algorithms: ['RS256'], publicKey: pemOf(PAIRS.otherRsa.publicKey) }
const ofCorp = (changes: Part = {}, header: Part = {}): string =>
  token({ alg: 'RS256', ...header }, claims(changes), PAIRS.rsa.privateKey)
const ofOther = (changes: Part = {}, header: Part = {}): string =>
  token({ alg: 'RS256', ...header }, claims({ iss: OTHER, ...changes }), PAIRS.otherRsa.privateKey)

/** Two issuers before an upstream that answers runs with a stream and everything else with JSON. */
function twoIssuers(t: Test, pair: Pair): Promise<Guarded> {
  const run = events({ type: 'RUN_STARTED' }, { type: 'RUN_FINISHED' })
  return guarded(t, { corp: corpKey, other: otherKey }, { pair, 
    answering: (request, response) => (request.target.endsWith('/run') ? run : json({ messages: [] }))(request, response),
  }) // oxfmt-ignore
}

const run = ({ gateway }: Guarded, as: string, threadId: string) =>
  gateway.ask({ target: '/api/copilotkit/agent/default/run', token: as, body: JSON.stringify(runInput(threadId)) })
const read = ({ gateway }: Guarded, as: string, threadId: string) =>
  gateway.ask({ target: `/api/copilotkit/threads/${threadId}/messages`, token: as })

void test('the same subject of two issuers is two users, who own different threads', async (t) => {
  const gate = await twoIssuers(t, MULTI_ROUTE)
  const { gateway, upstream } = gate
  t.equal((await run(gate, ofCorp(), 't-corp')).status, 200)
  t.equal((await run(gate, ofOther(), 't-other')).status, 200)
  t.same(owners(gateway.folder), ['t-corp=corp:alice', 't-other=other:alice'])
  t.equal((await read(gate, ofCorp(), 't-corp')).status, 200)
  t.equal((await read(gate, ofOther(), 't-other')).status, 200)
  const { length } = upstream.requests
  for (const [as, thread] of [
    [ofCorp(), 't-other'],
    [ofOther(), 't-corp'],
  ] as const) {
    t.equal((await read(gate, as, thread)).status, 403, `reading ${thread}`)
    t.equal((await run(gate, as, thread)).status, 403, `running ${thread}`)
    const gone = await gateway.ask({ method: 'DELETE', target: `/api/copilotkit/threads/${thread}`, token: as })
    t.equal(gone.status, 403, `deleting ${thread}`)
  }
  t.equal(upstream.requests.length, length, 'the upstream got nothing of it')
  t.same(owners(gateway.folder), ['t-corp=corp:alice', 't-other=other:alice'])
})

void test('a list holds the threads of the one, not of the other of the same name', async (t) => {
  const gate = await twoIssuers(t, MULTI_ROUTE)
  const { gateway, upstream } = gate
  await run(gate, ofCorp(), 't-corp')
  await run(gate, ofOther(), 't-other')
  upstream.answer(json({ threads: [{ id: 't-corp' }, { id: 't-other' }] }))
  for (const [as, own] of [
    [ofCorp(), 't-corp'],
    [ofOther(), 't-other'],
  ] as const) {
    const { body } = await gateway.ask({ target: '/api/copilotkit/threads?agentId=default', token: as })
    t.match(JSON.parse(body), { threads: [{ id: own }] })
    t.equal((JSON.parse(body) as { threads: unknown[] }).threads.length, 1)
  }
})

/** Subjects that some reader could take for the one before; each is a user of their own. */
const NEIGHBOURS = ['alice', 'Alice', 'ALICE', 'alice ', ' alice', 'alice.', 'other:alice', 'corp:alice', ':alice', 'alice:', 'al\u0131ce', '\u0430lice', 'alice\u200b', 'caf\u00e9', 'cafe\u0301', '\ufb01', 'fi', '1', '01', '1.0', 'null', 'anonymous', '__proto__', "alice'--", 'alice%20', 'alice+'] // oxfmt-ignore

void test('subjects that look alike are different users, each with a thread of their own', async (t) => {
  const gate = await twoIssuers(t, MULTI_ROUTE)
  const { gateway, upstream } = gate
  for (const [at, sub] of NEIGHBOURS.entries()) t.equal((await run(gate, ofCorp({ sub }), `t-${at}`)).status, 200, sub)
  t.same(new Set(owners(gateway.folder)), new Set(NEIGHBOURS.map((sub, at) => `t-${at}=corp:${sub}`)))
  const { length } = upstream.requests
  for (const sub of NEIGHBOURS.slice(1)) t.equal((await read(gate, ofCorp({ sub }), 't-0')).status, 403, sub)
  for (const [at, sub] of NEIGHBOURS.entries())
    t.equal((await read(gate, ofOther({ sub }), `t-${at}`)).status, 403, `other's ${sub}`)
  t.equal(upstream.requests.length, length)
  for (const [at, sub] of NEIGHBOURS.entries()) t.equal((await read(gate, ofCorp({ sub }), `t-${at}`)).status, 200, `own: ${sub}`)
})

void test('an operator of one issuer is none of another', async (t) => {
  const gate = await twoIssuers(t, MULTI_ROUTE)
  const clear = (as: string) => gate.gateway.ask({ method: 'POST', target: '/api/copilotkit/threads/clear', token: as })
  for (const claim of [{ role: 'operator' }, { permissions: ['threads:operate'] }, { sub: 'corp:olga', role: 'operator' }])
    t.equal((await clear(ofOther(claim))).status, 403, JSON.stringify(claim))
  t.same(gate.upstream.requests, [])
  t.equal((await clear(ofCorp({ role: 'operator' }))).status, 200)
  t.match(gate.upstream.requests, [{ method: 'POST', target: '/api/copilotkit/threads/clear' }])
})

void testFirstPair('a key counts for its own issuer, though both call it the same', async (t, pair) => {
  const [a, b] = [await startKeyServer(t), await startKeyServer(t)]
  a.keys(jwkOf(PAIRS.rsa.publicKey, { kid: 'k' }))
  b.keys(jwkOf(PAIRS.otherRsa.publicKey, { kid: 'k' }))
  const issuers = { a: { issuer: a.url, algorithms: ['RS256'] }, b: { issuer: b.url, algorithms: ['RS256'] } }
  const authenticate = gate(t, issuers)
  const { fate, upstream } = await guarded(t, issuers, { pair })
  for (const kid of ['k', undefined]) {
    const signed = (iss: string, pair: typeof PAIRS.rsa) => token({ alg: 'RS256', kid }, claims({ iss }), pair.privateKey)
    t.equal(await heard(authenticate, signed(a.url, PAIRS.rsa)), 'a:alice')
    t.equal(await heard(authenticate, signed(b.url, PAIRS.otherRsa)), 'b:alice')
    t.equal(await fate(signed(a.url, PAIRS.rsa)), PASSED)
    t.equal(await fate(signed(b.url, PAIRS.otherRsa)), PASSED)
    for (const [iss, pair] of [
      [a.url, PAIRS.otherRsa],
      [b.url, PAIRS.rsa],
    ] as const) {
      t.equal(await heard(authenticate, signed(iss, pair)), 'credential-invalid: signature-invalid')
      t.equal(await fate(signed(iss, pair)), REFUSED)
    }
  }
  t.equal(upstream.requests.length, 4)
})

void test('a key of the one under an id that only the other has is unknown', async (t) => {
  const [a, b] = [await startKeyServer(t), await startKeyServer(t)]
  a.keys(jwkOf(PAIRS.rsa.publicKey, { kid: 'of-a' }))
  b.keys(jwkOf(PAIRS.otherRsa.publicKey, { kid: 'of-b' }))
  const authenticate = gate(t, { a: { issuer: a.url, algorithms: ['RS256'] }, b: { issuer: b.url, algorithms: ['RS256'] } })
  const told = (kid: string, pair: typeof PAIRS.rsa) =>
    heard(authenticate, token({ alg: 'RS256', kid }, claims({ iss: a.url }), pair.privateKey))
  t.equal(await told('of-a', PAIRS.rsa), 'a:alice')
  t.equal(await told('of-b', PAIRS.otherRsa), 'credential-invalid: key-unknown')
  t.equal(await told('of-b', PAIRS.rsa), 'credential-invalid: key-unknown')
})

// As they stand in the payload's JSON: none of them is the issuer, to the letter.
// oxfmt-ignore
const OTHER_ISSUERS = [
  '"https://evil.example.com/"', '"https://login.example.com"', '"https://login.example.com//"', '"https://login.example.com/."', '"https://login.example.com/x"',
  '"https://login.example.com/?"', '"https://login.example.com/#"', '"https://login.example.com:443/"', '"https://login.example.com./"', '"https://a@login.example.com/"',
  '"http://login.example.com/"', '"HTTPS://login.example.com/"', '"https://LOGIN.example.com/"', '"https://login.example.com/ "', '" https://login.example.com/"',
  '"https://login.example.com/\\n"', '"https://login.example.com/\\u0000"', '"https://login.example.com/%2f"', '"https:\\\\login.example.com/"', '"//login.example.com/"',
  '"login.example.com"', '"https://login.example.com.evil.example/"', '"https://evil.example/https://login.example.com/"', '"https://login.example.co"', '"https"',
  '"corp"', '""', '" "', '"*"', '".*"', '"constructor"', '"__proto__"', '1', '0', 'true', 'false', 'null', '{}', '[]', '[["https://login.example.com/"]]',
  '["https://login.example.com/"]', '["https://login.example.com/","https://evil.example.com/"]', '["https://evil.example.com/","https://login.example.com/"]',
  '{"0":"https://login.example.com/"}', '{"toString":"https://login.example.com/"}',
]

void testFirstPair('an issuer that is nearly the configured one is another', async (t, pair) => {
  const authenticate = rsaGate(t)
  const { fate, upstream } = await guarded(t, { corp: corpKey }, { pair })
  t.equal(await fate(rsaToken(claims())), PASSED)
  for (const iss of OTHER_ISSUERS) {
    const text = JSON.stringify(claims({ iss: 'ISS' })).replace('"ISS"', iss)
    t.equal(await heard(authenticate, rsaToken(text)), 'credential-invalid: issuer-unknown', iss)
    t.equal(await fate(rsaToken(text)), REFUSED, iss)
  }
  t.equal(upstream.requests.length, 1)
  const escaped = JSON.stringify(claims()).replaceAll('/', '\\/').replace('login', '\\u006cogin')
  t.equal(await heard(authenticate, rsaToken(escaped)), 'corp:alice', 'what JSON reads as the issuer is it')
})

void test('issuers that differ in a slash are two, each with its own keys', async (t) => {
  const bare = 'https://login.example.com'
  const authenticate = gate(t, { with: corpKey, without: { ...otherKey, issuer: bare } })
  t.equal(await heard(authenticate, ofCorp()), 'with:alice')
  t.equal(await heard(authenticate, ofOther({ iss: bare })), 'without:alice')
  t.match(await heard(authenticate, ofCorp({ iss: bare })), /^credential-invalid/)
  t.match(await heard(authenticate, ofOther({ iss: ISSUER })), /^credential-invalid/)
})

void testFirstPair(
  'an issuer that stands twice is read in one way: the keys are those of the issuer that is believed',
  async (t, pair) => {
    const { fate, upstream } = await guarded(t, { corp: corpKey, other: otherKey }, { pair })
    const twice = (first: string, last: string): string =>
      JSON.stringify(claims({ iss: 'ISS' })).replace('"iss":"ISS"', `"iss":"${first}","iss":"${last}"`)
    for (const [first, last, forger] of [
      [ISSUER, OTHER, PAIRS.rsa],
      [OTHER, ISSUER, PAIRS.otherRsa],
    ] as const) {
      t.equal(
        await fate(signedAs('RS256', '{"alg":"RS256"}', twice(first, last), forger.privateKey)),
        REFUSED,
        `${first}, ${last}`,
      )
      const escaped = twice(first, last).replace('"iss":', '"\\u0069ss":')
      t.equal(await fate(signedAs('RS256', '{"alg":"RS256"}', escaped, forger.privateKey)), REFUSED, 'escaped')
    }
    const inside = JSON.stringify({ ...claims({ iss: OTHER }), __proto: 1 }).replace(
      '"__proto":1',
      `"__proto__":{"iss":"${ISSUER}"}`,
    )
    t.equal(await fate(signedAs('RS256', '{"alg":"RS256"}', inside, PAIRS.rsa.privateKey)), REFUSED, 'on a prototype')
    for (const name of ['Iss', 'ISS', 'iss ', 'issuer']) {
      const other = JSON.stringify(claims({ iss: undefined, [name]: ISSUER }))
      t.equal(await fate(signedAs('RS256', '{"alg":"RS256"}', other, PAIRS.rsa.privateKey)), REFUSED, name)
    }
    t.same(upstream.requests, [])
    t.equal(await fate(ofOther()), PASSED)
  },
)
