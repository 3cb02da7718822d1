/**
 * Tokens that cost more than they are worth: megabytes of base64 to decode, thousands of stops to split at, numbers of
 * claims to walk through, all before a signature was looked at. A token beyond 8192 characters is refused unread, and one
 * below that costs no more than its length.
 *
 * CVE-2025-30204 (golang-jwt) and CVE-2025-27144 (go-jose): a token of stops alone was split into millions of parts;
 * CVE-2026-48525 (PyJWT): the payload was decoded before anything was checked.
 */
import { test } from 'tap'
import { bearerToken } from '../../src/auth/authenticate.ts'
import { heard, rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { testUnbridged } from '../../testing/support/pairs.ts'
import { claims, PAIRS, pemOf } from '../../testing/support/signing.ts'

/** The longest value of the header: `Bearer `, and the token. */
const MOST = 8192
const LONGEST_TOKEN = MOST - 'Bearer '.length
const CORP = { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) } }

/** A good token of exactly this length: only its size can be wrong with it. */
function tokenOf(length: number): string {
  // Three bytes are four characters; the header takes what is left over by one of three names.
  for (const kid of ['k', 'kk', 'kkk', 'kkkk']) {
    let pad = Math.max(0, Math.floor(((length - 900) * 3) / 4))
    for (; ; pad += 1) {
      const token = rsaToken(claims({ pad: 'x'.repeat(pad) }), { kid })
      if (token.length === length) return token
      if (token.length > length) break
    }
  }
  throw new Error(`there is no token of ${length} characters`)
}

void test('a credential of 8192 characters is looked at, one of 8193 is not', (t) => {
  t.match(bearerToken(`Bearer ${'a'.repeat(LONGEST_TOKEN)}`), { token: /^a+$/ })
  t.match(bearerToken(`Bearer ${'a'.repeat(LONGEST_TOKEN + 1)}`), { code: 'credential-invalid', reason: 'token-too-long' })
  t.match(bearerToken(`Bearer ${'.'.repeat(1_000_000)}`), { code: 'credential-invalid', reason: 'token-too-long' })
  t.match(bearerToken(`Bearer ${' '.repeat(1_000_000)}`), { code: 'credential-invalid', reason: 'token-too-long' })
  t.end()
})

void testUnbridged('over the real gateway the longest token passes, and one character more reaches nothing', async (t, pair) => {
  const { fate, fateOf, gateway, upstream } = await guarded(t, CORP, { pair })
  t.equal(await fate(tokenOf(LONGEST_TOKEN)), PASSED)
  const reasons = () => gateway.lines.filter((line) => line['msg'] === 'request').map((line) => line['reason'])
  for (const more of [1, 2, 100, 4000]) {
    t.equal(await fate(tokenOf(LONGEST_TOKEN + more)), REFUSED, `${more} more`)
    t.equal(reasons().at(-1), 'token-too-long')
  }
  t.equal(await fate('.'.repeat(LONGEST_TOKEN + 1)), REFUSED, 'stops')
  t.equal(await fate(`${'A'.repeat(8000)}.${'A'.repeat(2000)}.A`), REFUSED, 'a header of nothing')
  // What the server does not even take as a head never gets here.
  t.equal(await fate(`${tokenOf(1000)}${'A'.repeat(20_000)}`), '431 headers-too-large, nothing upstream')
  t.equal(await fateOf(`Authorization: Bearer ${'.'.repeat(20_000)}`), '431 headers-too-large, nothing upstream')
  t.equal(upstream.requests.length, 1)
})

void test('a larger bound on heads does not raise the bound on tokens', async (t) => {
  const authenticate = rsaGate(t)
  t.equal(await heard(authenticate, tokenOf(LONGEST_TOKEN)), 'corp:alice')
  t.equal(await heard(authenticate, tokenOf(LONGEST_TOKEN + 1)), 'credential-invalid: token-too-long')
  t.equal(await heard(authenticate, tokenOf(60_000)), 'credential-invalid: token-too-long')
})

void test('nothing of an oversized token is decoded or parsed', async (t) => {
  const authenticate = rsaGate(t)
  const long = tokenOf(LONGEST_TOKEN + 1)
  const short = tokenOf(1000)
  const work: string[] = []
  const parse = JSON.parse.bind(JSON)
  const from = Buffer.from.bind(Buffer)
  t.intercept(JSON, 'parse', {
    value: (...given: Parameters<typeof parse>): unknown => {
      work.push('parsed')
      return parse(...given)
    },
  })
  t.intercept(Buffer, 'from', {
    value: (...given: Parameters<typeof from>) => {
      if (String((given as readonly unknown[])[1]).startsWith('base64')) work.push('decoded')
      return from(...given)
    },
  })
  const told = await authenticate(`Bearer ${long}`)
  t.same(work, [])
  t.match(told, { reason: 'token-too-long' })
  t.match(await authenticate(`Bearer ${short}`), { principal: { id: 'corp:alice' } })
  t.ok(work.includes('parsed') && work.includes('decoded'), 'a good one is')
})

void test('within the bound, what a token is made of costs nothing either', async (t) => {
  const authenticate = rsaGate(t)
  const deep = (open: string, close: string, times: number): string => open.repeat(times) + close.repeat(times)
  for (const [name, bad] of [
    ['stops', '.'.repeat(LONGEST_TOKEN)],
    ['stops between letters', 'a.'.repeat(LONGEST_TOKEN / 2)],
    ['padding', `a${'='.repeat(8000)}`],
    ['padding that does not end', `a${'='.repeat(8000)}a`],
    ['no stop', 'A'.repeat(LONGEST_TOKEN)],
    ['a header of brackets', `${Buffer.from('['.repeat(6000)).toString('base64url')}.e30.AA`],
    ['a header of objects', `${Buffer.from(deep('{"a":', '}', 900)).toString('base64url')}.e30.AA`],
    ['a payload of lists', rsaToken(`{"iss":${deep('[', ']', 2500)}}`)],
    ['an issuer of lists', rsaToken(JSON.stringify(claims({ iss: 'I' })).replace('"I"', deep('[', ']', 2000)))],
    ['a payload of numbers', rsaToken(`{"exp":1${'0'.repeat(5000)}}`)],
  ] as const) {
    t.match(await heard(authenticate, bad), /^credential-invalid/, name)
  }
  const many = Object.fromEntries(Array.from({ length: 400 }, (_, at) => [`c${at}`, at]))
  t.equal(await heard(authenticate, rsaToken(claims(many))), 'corp:alice', 'many claims are no fault')
  t.match(await heard(authenticate, rsaToken(claims({ aud: Array(1000).fill('o') }))), 'audience-mismatch')
  t.equal(await heard(authenticate, rsaToken(claims({ deep: [[[[[[[[[[]]]]]]]]]] }))), 'corp:alice', 'nor is depth')
})
