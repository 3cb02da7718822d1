/**
 * Algorithm confusion: a token says how it wants to be verified, and the verifier believes it. A public key taken for a
 * shared secret lets anybody sign who can read it, `none` needs no key at all, and a header that chooses among the
 * algorithms of one key chooses the weakest. Here a key serves what the configuration says and nothing that a token says.
 *
 * RFC 8725 §2.1 and §3.1; CVE-2026-34950 (fast-jwt, a public key behind a space is a secret), CVE-2026-22817 (Hono, the
 * header's algorithm where the JWK names none), CVE-2022-23540 (jsonwebtoken, `none` by default).
 */
import { createHash, generateKeyPairSync, randomBytes, type KeyObject } from 'node:crypto'
import { test } from 'tap'
import { gate, heard, rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { assembled, claims, jwkOf, PAIRS, pemOf, signature, signedAs, token } from '../../testing/support/signing.ts'

const SECRET = 'a secret of 64 bytes, which is what HS512 asks for: 0123456789abc'
const HMACS = ['HS256', 'HS384', 'HS512'] as const
const INVALID = 'credential-invalid: signature-invalid'
const NOT_ALLOWED = 'credential-invalid: algorithm-not-allowed'

for (const [algorithm, pair] of [
  ['RS256', PAIRS.rsa],
  ['RS384', PAIRS.rsa],
  ['RS512', PAIRS.rsa],
  ['PS256', PAIRS.rsa],
  ['PS384', PAIRS.rsa],
  ['PS512', PAIRS.rsa],
  ['ES256', PAIRS.p256],
  ['ES384', PAIRS.p384],
  ['ES512', PAIRS.p521],
  ['EdDSA', PAIRS.ed25519],
] as const) {
  void test(`${algorithm} by a public key file`, async (t) => {
    const authenticate = gate(t, { corp: { algorithms: [algorithm], publicKey: pemOf(pair.publicKey) } })
    t.equal(await heard(authenticate, token({ alg: algorithm }, claims(), pair.privateKey)), 'corp:alice')
  })
}

for (const algorithm of HMACS) {
  void test(`${algorithm} by a secret file, without the newline at its end`, async (t) => {
    for (const secret of [SECRET, `${SECRET}\n`, `${SECRET}\r\n`]) {
      const authenticate = gate(t, { corp: { algorithms: [algorithm], secret } })
      t.equal(await heard(authenticate, token({ alg: algorithm }, claims(), SECRET)), 'corp:alice')
      t.equal(await heard(authenticate, token({ alg: algorithm }, claims(), `${SECRET}!`)), INVALID)
    }
  })
}

/** One ASN.1 value in DER. */
function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const size = content.length
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

/** A certificate (RFC 5280 §4.1) for a public key, as an issuer publishes it in `x5c`; it is signed by nobody. */
function certificateOf(key: KeyObject): Buffer {
  const sequence = (...parts: readonly Buffer[]): Buffer => der(0x30, ...parts)
  const algorithm = sequence(Buffer.from('06092a864886f70d01010b0500', 'hex'))
  const name = sequence(der(0x31, sequence(Buffer.from('0603550403', 'hex'), der(0x0c, Buffer.from('login.example.com')))))
  const validity = sequence(der(0x17, Buffer.from('250101000000Z')), der(0x17, Buffer.from('450101000000Z')))
  const spki = key.export({ type: 'spki', format: 'der' })
  const version = der(0xa0, der(2, Buffer.from([2])))
  const body = sequence(version, der(2, Buffer.from([1])), algorithm, name, validity, name, spki)
  return sequence(body, algorithm, der(3, Buffer.alloc(257)))
}

const inPem = (label: string, bytes: Buffer): string =>
  `-----BEGIN ${label}-----\n${bytes.toString('base64').replace(/.{64}(?=.)/g, '$&\n')}\n-----END ${label}-----\n`

/** Everything that somebody could take a public key for when it has to be the secret of an HMAC. */
function wrappingsOf(key: KeyObject): readonly (readonly [name: string, secret: string | Buffer])[] {
  const pem = pemOf(key)
  const spki = key.export({ type: 'spki', format: 'der' })
  const certificate = certificateOf(key)
  const jwk = jwkOf(key)
  const members = Object.fromEntries(Object.entries(jwk).sort(([a], [b]) => (a < b ? -1 : 1)))
  const numbers = (['n', 'e', 'x', 'y'] as const).flatMap((name) =>
    typeof jwk[name] === 'string' ? ([[name, jwk[name]]] as const) : [],
  )
  const rsa = key.asymmetricKeyType === 'rsa'
  return [
    ['the PEM file', pem],
    ['the PEM file without its newline', pem.trim()],
    ['the PEM file with CRLF', pem.replaceAll('\n', '\r\n')],
    ['the PEM file with CRLF and no end', pem.trim().replaceAll('\n', '\r\n')],
    ['the PEM file with two newlines', `${pem}\n`],
    ['the PEM file after a space', ` ${pem}`],
    ['the PEM file after a newline', `\n${pem}`],
    ['the PEM file after a BOM', `\ufeff${pem}`],
    ['the PEM file after a comment', `# the key of the issuer\n${pem}`],
    ['the PEM file in one line', pem.replaceAll('\n', '')],
    ['the PEM file with written-out newlines', pem.replaceAll('\n', '\\n')],
    ['the PEM file in UTF-16', Buffer.from(pem, 'utf16le')],
    ['the text between the PEM lines', pem.split('\n').slice(1, -2).join('\n')],
    ['DER', spki],
    ['DER in base64', spki.toString('base64')],
    ['DER in base64url', spki.toString('base64url')],
    ['DER in hexadecimal', spki.toString('hex')],
    ...(rsa
      ? ([
          ['PKCS #1 in PEM', key.export({ type: 'pkcs1', format: 'pem' }) as string],
          ['PKCS #1 in DER', key.export({ type: 'pkcs1', format: 'der' })],
        ] as const)
      : []),
    ['a certificate in PEM', inPem('CERTIFICATE', certificate)],
    ['a certificate in DER', certificate],
    ['a certificate as x5c writes it', certificate.toString('base64')],
    ["a certificate's thumbprint", createHash('sha1').update(certificate).digest('base64url')],
    ['the JWK', JSON.stringify(jwk)],
    ['the JWK in the order of its thumbprint', JSON.stringify(members)],
    ['the JWK, indented', JSON.stringify(jwk, null, 2)],
    ['the JWK of the key set', JSON.stringify({ ...jwk, kid: 'k' })],
    ['the key set', JSON.stringify({ keys: [{ ...jwk, kid: 'k' }] })],
    ["the JWK's thumbprint", createHash('sha256').update(JSON.stringify(members)).digest('base64url')],
    ...numbers.flatMap(
      ([name, value]) =>
        [
          [`the number ${name} as it is written`, value],
          [`the number ${name}`, Buffer.from(value, 'base64url')],
        ] as const,
    ),
    ['the key id', 'k'],
    ['nothing', ''],
    ['a zero', Buffer.alloc(1)],
  ]
}

/** Every way in which a gate can know a public key, with the algorithm that it serves there. */
const KNOWN: readonly (readonly [name: string, algorithm: string, pair: { publicKey: KeyObject }, remote: boolean])[] = [
  ['an RSA key file', 'RS256', PAIRS.rsa, false],
  ['an EC key file', 'ES256', PAIRS.p256, false],
  ['an Ed25519 key file', 'EdDSA', PAIRS.ed25519, false],
  ['a key set with an RSA key', 'RS256', PAIRS.rsa, true],
  ['a key set with an EC key', 'ES256', PAIRS.p256, true],
]

for (const [name, algorithm, pair, remote] of KNOWN) {
  void test(`${name}: no wrapping of the public key is a secret`, async (t) => {
    let source: object = { publicKey: pemOf(pair.publicKey) }
    if (remote) {
      const server = await startKeyServer(t)
      // No `alg`: then a token's own would be the only one that is written anywhere.
      server.keys(jwkOf(pair.publicKey, { kid: 'k' }))
      source = { jwksUri: `${server.url}/jwks` }
    }
    const authenticate = gate(t, { corp: { algorithms: [algorithm], ...source } })
    for (const [wrapping, secret] of wrappingsOf(pair.publicKey)) {
      for (const alg of HMACS) {
        t.equal(await heard(authenticate, token({ alg, kid: 'k' }, claims(), secret)), NOT_ALLOWED, `${alg} with ${wrapping}`)
        const relabelled = signedAs(alg, `{"alg":"${algorithm}","kid":"k"}`, claims(), secret)
        t.match(await heard(authenticate, relabelled), /^credential-invalid/, `${alg} called ${algorithm} with ${wrapping}`)
      }
    }
  })
}

/** A public key in DER whose last byte is this one: an EC point is any bytes. */
function keyThatEndsWith(byte: number): Buffer {
  for (;;) {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const der = publicKey.export({ type: 'spki', format: 'der' })
    if (der.at(-1) === byte) return der
  }
}

void test('a secret file that contains a key in any encoding is refused at start', (t) => {
  const { publicKey, privateKey } = PAIRS.rsa
  const der = (type: 'spki' | 'pkcs1') => publicKey.export({ type, format: 'der' })
  const jwk = JSON.stringify(jwkOf(publicKey))
  const wrapped: Readonly<Record<string, string | Buffer>> = {
    PEM: pemOf(publicKey),
    'PEM behind a space': ` ${pemOf(publicKey)}`,
    'PEM with CRLF': pemOf(publicKey).replaceAll('\n', '\r\n'),
    'PEM of PKCS#1': publicKey.export({ type: 'pkcs1', format: 'pem' }),
    'the private key': privateKey.export({ type: 'pkcs8', format: 'pem' }),
    'a key on a curve': pemOf(PAIRS.p256.publicKey),
    'a certificate': `-----BEGIN CERTIFICATE-----\n${certificateOf(publicKey).toString('base64')}\n-----END CERTIFICATE-----`,
    JWK: jwk,
    'a key set': JSON.stringify({ keys: [jwkOf(publicKey)] }),
    'a list of keys': `[${jwk}]`,
    'DER (spki)': der('spki'),
    'DER (pkcs1)': der('pkcs1'),
    'DER in base64': der('spki').toString('base64'),
    'DER in base64, in lines': der('spki').toString('base64').replace(/.{64}/g, '$&\n'),
    'DER in base64url': der('pkcs1').toString('base64url'),
    'DER in hexadecimal': der('spki').toString('hex'),
    'the private key in DER': privateKey.export({ type: 'pkcs8', format: 'der' }),
    'a key whose last byte is a newline': keyThatEndsWith(0x0a),
    'PEM in base64': Buffer.from(pemOf(publicKey)).toString('base64'),
    'PEM in UTF-16': Buffer.from(pemOf(publicKey), 'utf16le'),
    'JWK in base64': Buffer.from(jwk).toString('base64'),
    'JWK behind a byte order mark': `\ufeff${jwk}`,
    'the certificate of a key set': certificateOf(publicKey).toString('base64'),
    'the certificate in DER': certificateOf(publicKey),
    'an SSH key': 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 alice@example',
  }
  for (const [name, secret] of Object.entries(wrapped)) {
    t.throws(() => gate(t, { corp: { algorithms: ['HS256'], secret } }), /holds a key or certificate/, name)
  }
  for (const secret of [
    SECRET,
    randomBytes(64),
    randomBytes(64).toString('base64'),
    randomBytes(64).toString('hex'),
    '0'.repeat(64),
  ])
    t.ok(gate(t, { corp: { algorithms: ['HS256'], secret } }))
  t.end()
})

void testFirstPair(
  'where another issuer has a shared secret, public keys are no secrets and the secret is no key of theirs',
  async (t, pair) => {
    const other = 'https://other.example'
    const { fate, upstream } = await guarded(
      t,
      {
        corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) },
        other: { issuer: other, algorithms: ['HS256'], secret: SECRET },
      },
      { pair },
    )
    t.equal(await fate(rsaToken(claims())), PASSED)
    t.equal(await fate(token({ alg: 'HS256' }, claims({ iss: other }), SECRET)), PASSED)
    const { length } = upstream.requests
    t.equal(await fate(token({ alg: 'HS256' }, claims(), SECRET)), REFUSED, 'the secret of the one for the other')
    t.equal(await fate(signedAs('HS256', '{"alg":"RS256"}', claims(), SECRET)), REFUSED, 'called RS256')
    t.equal(await fate(rsaToken(claims({ iss: other }))), REFUSED, 'the key of the other for the one')
    for (const [wrapping, secret] of wrappingsOf(PAIRS.rsa.publicKey)) {
      t.equal(await fate(token({ alg: 'HS256' }, claims(), secret)), REFUSED, wrapping)
      t.equal(await fate(token({ alg: 'HS256' }, claims({ iss: other }), secret)), REFUSED, `${wrapping}, where HS256 is taken`)
    }
    t.equal(upstream.requests.length, length)
  },
)

// As they stand in the header's JSON.
// oxfmt-ignore
const NO_ALGORITHMS = [
  '"none"', '"None"', '"NONE"', '"nOnE"', '" none"', '"none "', '"none\\t"', '"none\\n"', '"\\u006eone"', '"none\\u0000"', '"n\\u043ene"', '"non"',
  '""', '" "', 'null', 'true', 'false', '0', '1', '[]', '{}', '["none"]', '["RS256"]', '["RS256","none"]', '[["RS256"]]',
  '{"0":"RS256"}', '{"alg":"RS256"}', '"rs256"', '"Rs256"', '"RS256 "', '" RS256"', '"RS256\\u0000"', '"RS256\\n"', '"RS256,none"', '"RS-256"',
  '"RSA256"', '"RS1"', '"RS2560"', '"SHA256"', '"dir"', '"RSA1_5"', '"constructor"', '"__proto__"', '"toString"', '"length"', '"*"',
]

/** Tokens with a header as it stands: without a signature, with the one of a good token, and with one that is good for this header. */
function unsignedAndSigned(header: string): readonly (readonly [name: string, token: string])[] {
  const payload = JSON.stringify(claims())
  const borrowed = signature('RS256', rsaToken(payload).replace(/\.[^.]*$/, ''), PAIRS.rsa.privateKey)
  return [
    ['no signature', assembled(header, payload, Buffer.alloc(0))],
    ['a borrowed signature', assembled(header, payload, borrowed)],
    ['a good signature', signedAs('RS256', header, payload, PAIRS.rsa.privateKey)],
    ["a signature with the public key's PEM", signedAs('HS256', header, payload, pemOf(PAIRS.rsa.publicKey))],
  ]
}

void test('a header that names no configured algorithm, to the letter, names none', async (t) => {
  const authenticate = rsaGate(t)
  const headers = NO_ALGORITHMS.map((alg) => `{"typ":"JWT","alg":${alg}}`)
  // The name, too, is to the letter, and no prototype has it.
  headers.push('{}', '{"Alg":"RS256"}', '{"ALG":"RS256"}', '{"alg ":"RS256"}', '{"enc":"RS256"}', '{"__proto__":{"alg":"RS256"}}')
  for (const header of headers) {
    for (const [name, bad] of unsignedAndSigned(header)) {
      const answer = await heard(authenticate, bad)
      t.match(answer, /^credential-invalid: (?:algorithm-not-allowed|token-malformed)$/, `${header} with ${name}`)
    }
  }
  t.equal(await heard(authenticate, signedAs('RS256', '{ "alg" : "RS\\u003256" }', claims(), PAIRS.rsa.privateKey)), 'corp:alice')
})

void test('a header that names two algorithms is read in one way, and the signature has to fit that', async (t) => {
  const authenticate = rsaGate(t)
  for (const header of ['{"alg":"RS256","alg":"none"}', '{"alg":"RS256","\\u0061lg":"HS256"}', '{"alg":"RS256","alg":null}']) {
    for (const [name, bad] of unsignedAndSigned(header))
      t.equal(await heard(authenticate, bad), NOT_ALLOWED, `${header}, ${name}`)
  }
  // RFC 7515 §4: the last one counts, or the token is refused.
  for (const header of ['{"alg":"none","alg":"RS256"}', '{"alg":"HS256","alg":"RS256"}']) {
    for (const [name, bad] of unsignedAndSigned(header).filter(([kind]) => kind !== 'a good signature'))
      t.match(await heard(authenticate, bad), /^credential-invalid/, `${header}, ${name}`)
  }
})

const RSA = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']

void test('one RSA key with six algorithms: a token is verified as the one that it names', async (t) => {
  const authenticate = gate(t, { corp: { algorithms: RSA, publicKey: pemOf(PAIRS.rsa.publicKey) } })
  for (const named of RSA) {
    for (const used of RSA) {
      const answer = await heard(authenticate, signedAs(used, `{"alg":"${named}"}`, claims(), PAIRS.rsa.privateKey))
      t.equal(answer, named === used ? 'corp:alice' : INVALID, `signed by ${used}, called ${named}`)
    }
  }
})

void test('an algorithm that is not configured is refused, though the key could serve it', async (t) => {
  const authenticate = rsaGate(t)
  for (const alg of RSA.slice(1)) t.equal(await heard(authenticate, token({ alg }, claims(), PAIRS.rsa.privateKey)), NOT_ALLOWED)
  t.equal(await heard(authenticate, token({ alg: 'ES256' }, claims(), PAIRS.p256.privateKey)), NOT_ALLOWED)
})

void test('in a set with keys of every kind, a token is verified by a key of the kind that its algorithm asks for', async (t) => {
  const server = await startKeyServer(t)
  const keys = { rsa: PAIRS.rsa, p256: PAIRS.p256, p384: PAIRS.p384, ed: PAIRS.ed25519 }
  server.keys(...Object.entries(keys).map(([kid, pair]) => jwkOf(pair.publicKey, { kid })))
  const algorithms = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA']
  const authenticate = gate(t, { corp: { algorithms, jwksUri: `${server.url}/jwks` } })
  const own: Readonly<Record<string, string>> = { RS256: 'rsa', PS256: 'rsa', ES256: 'p256', ES384: 'p384', EdDSA: 'ed' }
  const told = async (header: string, used: string) => {
    const pair = keys[own[used] as keyof typeof keys]
    return heard(authenticate, signedAs(used, header, claims(), pair.privateKey))
  }
  for (const used of algorithms) {
    for (const named of algorithms) {
      for (const kid of [...Object.keys(keys), undefined]) {
        const honest = named === used && (kid === undefined || kid === own[used])
        const answer = await told(JSON.stringify({ alg: named, kid }), used)
        t.match(answer, honest ? /^corp:alice$/ : /^credential-invalid/, `${used} called ${named}, kid ${String(kid)}`)
      }
    }
  }
})

void test('a good signature of another key is refused', async (t) => {
  t.equal(await heard(rsaGate(t), token({ alg: 'RS256' }, claims(), PAIRS.otherRsa.privateKey)), INVALID)
})

void testFirstPair('over the real gateway, nothing of this reaches the upstream', async (t, pair) => {
  const server = await startKeyServer(t)
  server.keys(jwkOf(PAIRS.rsa.publicKey, { kid: 'k' }))
  for (const source of [{ publicKey: pemOf(PAIRS.rsa.publicKey) }, { jwksUri: `${server.url}/jwks` }]) {
    const { fate, upstream } = await guarded(t, { corp: { algorithms: ['RS256', 'PS256'], ...source } }, { pair })
    t.equal(await fate(rsaToken(claims(), { kid: 'k' })), PASSED)
    for (const [wrapping, secret] of wrappingsOf(PAIRS.rsa.publicKey)) {
      t.equal(await fate(token({ alg: 'HS256', kid: 'k' }, claims(), secret)), REFUSED, wrapping)
      t.equal(await fate(signedAs('HS256', '{"alg":"RS256","kid":"k"}', claims(), secret)), REFUSED, `${wrapping}, called RS256`)
    }
    for (const alg of NO_ALGORITHMS)
      t.equal(await fate(assembled(`{"alg":${alg}}`, JSON.stringify(claims()), Buffer.alloc(0))), REFUSED, alg)
    t.equal(await fate(signedAs('RS256', '{"alg":"PS256","kid":"k"}', claims(), PAIRS.rsa.privateKey)), REFUSED)
    t.equal(upstream.requests.length, 1)
  }
})
