/**
 * Signatures that prove nothing: the ECDSA signature of zeros that fits every token, numbers beyond the order of the
 * curve, a form or a length that some verifiers cut or fill up, another hash, another salt, or one bit changed anywhere.
 * Each must fail, and an error inside the verifier is no yes.
 *
 * CVE-2022-21449 (Java, ECDSA with r = s = 0), CVE-2020-28042 (ServiceStack, an empty signature compared as equal),
 * GHSA-q67f-28xg-22rw (node-forge, the s of Ed25519 was not held against the order);
 * RFC 7518 §3.2-3.5 (form and length of signatures, salt of PSS), RFC 8032 §5.1.7 (Ed25519: s is below the order).
 */
import { constants, createHash, generateKeyPairSync, privateEncrypt, sign as signBytes, type KeyObject } from 'node:crypto'
import { test } from 'tap'
import { gate, heard, rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { testUnbridged } from '../../testing/support/pairs.ts'
import { assembled, claims, PAIRS, pemOf, signature, token } from '../../testing/support/signing.ts'

const SECRET = Buffer.alloc(64, 's')

/** The order of each curve (SEC 2 §2.4.2, §2.5.1, §2.6.1), which no number of a signature reaches. */
const ORDERS = {
  ES256: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  ES384: 0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  ES512:
    0x01fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409n,
} as const
/** The order of Ed25519's base point (RFC 8032 §5.1). */
const ED25519_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n

const bytesOf = (value: bigint, size: number): Buffer => Buffer.from(value.toString(16).padStart(size * 2, '0'), 'hex')
const numberOf = (bytes: Buffer): bigint => BigInt(`0x${bytes.toString('hex')}`)

/** The ASN.1 form that TLS and certificates use (RFC 3279 §2.2.3). */
function inDer(r: bigint, s: bigint): Buffer {
  const whole = (value: bigint): Buffer => {
    const hex = value.toString(16)
    const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
    const positive = bytes[0]! > 0x7f ? Buffer.concat([Buffer.alloc(1), bytes]) : bytes
    return Buffer.concat([Buffer.from([2, positive.length]), positive])
  }
  const both = Buffer.concat([whole(r), whole(s)])
  return Buffer.concat([Buffer.from(both.length > 127 ? [0x30, 0x81, both.length] : [0x30, both.length]), both])
}

type Forged = readonly (readonly [name: string, signature: Buffer])[]

/** Forgeries that need no key, and spellings of a good signature that are none. */
function ofLength(good: Buffer): Forged {
  const zeros = (size: number): Buffer => Buffer.alloc(size)
  return [
    ['zeros', zeros(good.length)],
    ['ones', Buffer.alloc(good.length, 0xff)],
    ['a single zero', zeros(1)],
    ['half of it', good.subarray(0, good.length / 2)],
    ['the other half', good.subarray(good.length / 2)],
    ['a byte too few', good.subarray(0, -1)],
    ['its first byte left out', good.subarray(1)],
    ['a zero after it', Buffer.concat([good, zeros(1)])],
    ['a zero before it', Buffer.concat([zeros(1), good])],
    ['zeros up to twice its length', Buffer.concat([good, zeros(good.length)])],
    ['twice', Buffer.concat([good, good])],
    ['backwards', Buffer.from(good).reverse()],
    ['a single byte of it', good.subarray(0, 1)],
    ['its text in base64', Buffer.from(good.toString('base64'))],
    ['its text in hexadecimal', Buffer.from(good.toString('hex'))],
  ]
}

function forgedEcdsa(good: Buffer, order: bigint): Forged {
  const size = good.length / 2
  const [r, s] = [numberOf(good.subarray(0, size)), numberOf(good.subarray(size))]
  const pair = (one: bigint, two: bigint): Buffer => Buffer.concat([bytesOf(one, size), bytesOf(two, size)])
  const largest = 256n ** BigInt(size) - 1n
  return [
    ['r and s are 0', pair(0n, 0n)],
    ['r is 0', pair(0n, s)],
    ['s is 0', pair(r, 0n)],
    ['r is 0, s is 1', pair(0n, 1n)],
    ['r is 1, s is 0', pair(1n, 0n)],
    ['r and s are 1', pair(1n, 1n)],
    ['r is the order', pair(order, s)],
    ['s is the order', pair(r, order)],
    ['both are the order', pair(order, order)],
    ['both are just above the order', pair(order + 1n, order + 1n)],
    ['both are as large as can be written', pair(largest, largest)],
    ['r and s change places', pair(s, r)],
    ['DER', inDer(r, s)],
    ['DER of zeros', inDer(0n, 0n)],
    ['DER in length as its own', Buffer.concat([inDer(0n, 0n), Buffer.alloc(good.length)]).subarray(0, good.length)],
    ['DER with bytes behind it', Buffer.concat([inDer(r, s), Buffer.alloc(4)])],
  ]
}

/** Little-endian, as RFC 8032 writes numbers. */
function forgedEd25519(good: Buffer): Forged {
  const [r, s] = [good.subarray(0, 32), numberOf(Buffer.from(good.subarray(32)).reverse())]
  const withS = (value: bigint): Buffer => Buffer.concat([r, bytesOf(value, 32).reverse()])
  const identity = Buffer.concat([Buffer.from([1]), Buffer.alloc(31)])
  return [
    ['s is larger by the order', withS(s + ED25519_ORDER)],
    ['s is the order', withS(ED25519_ORDER)],
    ['s is as large as can be written', withS(2n ** 256n - 1n)],
    ['s is 0 and R is the identity', Buffer.concat([identity, Buffer.alloc(32)])],
    ['R is the identity', Buffer.concat([identity, good.subarray(32)])],
    ['R is not canonical', Buffer.concat([Buffer.from(`ee${'ff'.repeat(30)}7f`, 'hex'), Buffer.alloc(32)])],
  ]
}

function forgedRsa(good: Buffer, input: string, key: KeyObject): Forged {
  const modulus = numberOf(Buffer.from(key.export({ format: 'jwk' }).n ?? '', 'base64url'))
  const digest = createHash('sha256').update(input).digest()
  const pss = (saltLength: number): Buffer =>
    signBytes('sha256', Buffer.from(input), { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength })
  return [
    ['larger by the modulus', bytesOf(numberOf(good) + modulus, 257)],
    ['the modulus', bytesOf(modulus, 256)],
    ['one', bytesOf(1n, 256)],
    ['the modulus less one', bytesOf(modulus - 1n, 256)],
    ['negated', bytesOf(modulus - numberOf(good), 256)],
    ['over SHA-1', signBytes('sha1', Buffer.from(input), key)],
    ['over SHA-512', signBytes('sha512', Buffer.from(input), key)],
    ['over the digest without its name', privateEncrypt({ key, padding: constants.RSA_PKCS1_PADDING }, digest)],
    ['over the input itself', privateEncrypt({ key, padding: constants.RSA_PKCS1_PADDING }, Buffer.from(input.slice(0, 200)))],
    ['over the digest of the digest', signBytes('sha256', digest, key)],
    ['PSS without a salt', pss(0)],
    ['PSS with another salt', pss(20)],
    ['PSS with the longest salt', pss(constants.RSA_PSS_SALTLEN_MAX_SIGN)],
  ]
}

const OTHERS = {
  p256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ed25519: generateKeyPairSync('ed25519'),
}

type Forger = (good: Buffer, input: string) => Forged
const ecdsa =
  (order: bigint): Forger =>
  (good) =>
    forgedEcdsa(good, order)
const rsa: Forger = (good, input) => forgedRsa(good, input, PAIRS.rsa.privateKey)
const none: Forger = () => []
const publicOf = (pair: { readonly publicKey: KeyObject }) => ({ publicKey: pemOf(pair.publicKey) })

for (const [alg, key, source, forge] of [
  ['RS256', PAIRS.rsa.privateKey, publicOf(PAIRS.rsa), rsa],
  ['PS256', PAIRS.rsa.privateKey, publicOf(PAIRS.rsa), rsa],
  ['ES256', PAIRS.p256.privateKey, publicOf(PAIRS.p256), ecdsa(ORDERS.ES256)],
  ['ES384', PAIRS.p384.privateKey, publicOf(PAIRS.p384), ecdsa(ORDERS.ES384)],
  ['ES512', PAIRS.p521.privateKey, publicOf(PAIRS.p521), ecdsa(ORDERS.ES512)],
  ['EdDSA', PAIRS.ed25519.privateKey, publicOf(PAIRS.ed25519), forgedEd25519],
  ['HS256', SECRET, { secret: SECRET }, none],
  ['HS512', SECRET, { secret: SECRET }, none],
] as const) {
  void testUnbridged(`${alg}: no forged signature passes, and nothing of it reaches the upstream`, async (t, pair) => {
    const [header, payload] = [JSON.stringify({ alg, typ: 'JWT' }), JSON.stringify(claims())]
    const input = token({ alg, typ: 'JWT' }, payload, key).replace(/\.[^.]*$/, '')
    const good = signature(alg, input, key)
    const { fate, upstream } = await guarded(t, { corp: { algorithms: [alg], ...source } }, { pair })
    t.equal(await fate(assembled(header, payload, good)), PASSED)
    const authenticate = gate(t, { corp: { algorithms: [alg], ...source } })
    for (const [name, forged] of [...ofLength(good), ...forge(good, input), ['nothing', Buffer.alloc(0)] as const]) {
      t.match(await heard(authenticate, assembled(header, payload, forged)), /^credential-invalid/, name)
      t.equal(await fate(assembled(header, payload, forged)), REFUSED, name)
    }
    t.equal(upstream.requests.length, 1)
  })
}

for (const alg of ['RS256', 'PS256'] as const) {
  void test(`${alg}: a signature whose leading zero is left out is none: it would be a second spelling of its token`, async (t) => {
    const authenticate = gate(t, { corp: { algorithms: [alg], publicKey: pemOf(PAIRS.rsa.publicKey) } })
    const header = JSON.stringify({ alg, typ: 'JWT' })
    let payload = ''
    let good: Buffer = Buffer.from([1])
    for (let at = 0; good[0] !== 0; at += 1) {
      payload = JSON.stringify(claims({ jti: String(at) }))
      good = signature(alg, assembled(header, payload, Buffer.alloc(0)).replace(/\.$/, ''), PAIRS.rsa.privateKey)
    }
    t.equal(await heard(authenticate, assembled(header, payload, good)), 'corp:alice')
    t.match(await heard(authenticate, assembled(header, payload, good.subarray(1))), /^credential-invalid/)
  })
}

/** The same bytes with one bit turned over. */
function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[at]! ^= 1 << (at % 8)
  return copy
}

for (const [alg, key, publicKey] of [
  ['RS256', PAIRS.rsa.privateKey, PAIRS.rsa.publicKey],
  ['ES256', PAIRS.p256.privateKey, PAIRS.p256.publicKey],
  ['EdDSA', PAIRS.ed25519.privateKey, PAIRS.ed25519.publicKey],
] as const) {
  void test(`${alg}: one bit changed in any byte of header, payload or signature`, async (t) => {
    const authenticate = gate(t, { corp: { algorithms: [alg], publicKey: pemOf(publicKey) } })
    const whole = token({ alg, typ: 'JWT' }, claims(), key)
    t.equal(await heard(authenticate, whole), 'corp:alice')
    const [header, payload, signed] = whole.split('.').map((part) => Buffer.from(part, 'base64url')) as [Buffer, Buffer, Buffer]
    const passed: string[] = []
    const see = async (part: string, at: number, changed: string): Promise<void> => {
      if (!(await heard(authenticate, changed)).startsWith('credential-invalid')) passed.push(`${part} ${at}`)
    }
    for (const at of header.keys()) await see('header', at, assembled(flipped(header, at), payload, signed))
    for (const at of payload.keys()) await see('payload', at, assembled(header, flipped(payload, at), signed))
    for (const at of signed.keys()) await see('signature', at, assembled(header, payload, flipped(signed, at)))
    t.same(passed, [])
  })
}

void testUnbridged('a signature is good for its own header and payload alone', async (t, pair) => {
  const { fate, upstream } = await guarded(
    t,
    { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) } },
    { pair },
  )
  const [alice, bob] = [rsaToken(claims()), rsaToken(claims({ sub: 'bob', role: 'operator' }), { kid: 'b' })]
  const [ah, ap, as] = alice.split('.')
  const [bh, bp, bs] = bob.split('.')
  t.equal(await fate(alice), PASSED)
  t.equal(await fate(bob), PASSED)
  for (const parts of [`${ah}.${bp}.${as}`, `${ah}.${ap}.${bs}`, `${bh}.${ap}.${as}`, `${bh}.${bp}.${as}`, `${ah}.${bp}.${bs}`])
    t.equal(await fate(parts), REFUSED, parts.slice(-20))
  // The stop belongs to what is signed: moving it makes other parts of the same text.
  t.equal(await fate(`${ah}${ap?.slice(0, 4)}.${ap?.slice(4)}.${as}`), REFUSED)
  t.equal(await fate(`${ah?.slice(0, -4)}.${ah?.slice(-4)}${ap}.${as}`), REFUSED)
  t.equal(upstream.requests.length, 2)
})

void testUnbridged('a key of the same kind that is not the one of the issuer signs nothing', async (t, pair) => {
  for (const [alg, own, other] of [
    ['RS256', PAIRS.rsa, PAIRS.otherRsa],
    ['ES256', PAIRS.p256, OTHERS.p256],
    ['EdDSA', PAIRS.ed25519, OTHERS.ed25519],
  ] as const) {
    const { fate, upstream } = await guarded(t, { corp: { algorithms: [alg], publicKey: pemOf(own.publicKey) } }, { pair })
    t.equal(await fate(token({ alg }, claims(), own.privateKey)), PASSED)
    t.equal(await fate(token({ alg }, claims(), other.privateKey)), REFUSED, alg)
    t.equal(upstream.requests.length, 1)
  }
})

void test('another signature of the same claims is the same user: what is signed decides, not how it is written', async (t) => {
  // ECDSA knows two signatures for each (s and order - s), and RSA-PSS a new one every time.
  const authenticate = gate(t, { corp: { algorithms: ['ES256'], publicKey: pemOf(PAIRS.p256.publicKey) } })
  const whole = token({ alg: 'ES256' }, claims(), PAIRS.p256.privateKey)
  const [header = '', payload = '', signed = ''] = whole.split('.')
  const bytes = Buffer.from(signed, 'base64url')
  const other = Buffer.concat([bytes.subarray(0, 32), bytesOf(ORDERS.ES256 - numberOf(bytes.subarray(32)), 32)])
  t.equal(await heard(authenticate, `${header}.${payload}.${other.toString('base64url')}`), 'corp:alice')
  const forged = Buffer.from(JSON.stringify(claims({ sub: 'bob' }))).toString('base64url')
  t.match(await heard(authenticate, `${header}.${forged}.${other.toString('base64url')}`), /^credential-invalid/)
  t.equal(await heard(rsaGate(t), rsaToken(claims())), 'corp:alice')
})
