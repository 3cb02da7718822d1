/** What certificates and keys in PEM files are accepted, and what an operator is told of the others. */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { test } from 'tap'
import {
  certificatesIn,
  checkAcceptable,
  checkPair,
  checkPrivateKey,
  validityOf,
  validityWarning,
} from '../../src/tls/certificates.ts'
import { encrypted, inDays, makeAuthority } from '../../testing/support/issuing.ts'

const AUTHORITY = makeAuthority()
const PAIR = AUTHORITY.issue()
const OTHER = AUTHORITY.issue()
const HOUR = 3_600_000

void test('forms of keys', (t) => {
  const key = createPrivateKey(PAIR.key)
  const sec1 = key.export({ type: 'sec1', format: 'pem' }) as string
  const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n'
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs1', format: 'pem' }) as string
  for (const pem of [PAIR.key, sec1, parameters + sec1, PAIR.cert + PAIR.key, rsa]) t.doesNotThrow(() => checkPrivateKey(pem))
  const old = key.export({ type: 'sec1', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'x' }) as string
  for (const pem of [encrypted(PAIR.key), old]) {
    t.throws(() => checkPrivateKey(pem), { message: 'is encrypted', hint: /openssl pkey -in FILE -out NEW/ })
  }
  for (const pem of [
    '',
    PAIR.cert,
    'nonsense',
    PAIR.key.replace(/\n.{8}/, '\n'),
    createPrivateKey(PAIR.key).asymmetricKeyType!,
  ]) {
    t.throws(() => checkPrivateKey(pem), { message: 'holds no private key in PEM form' })
  }
  t.end()
})

void test('a key belongs to the first certificate of its file', (t) => {
  t.doesNotThrow(() => checkPair(PAIR.cert + AUTHORITY.cert, PAIR.key, 'f'))
  t.throws(() => checkPair(PAIR.cert, OTHER.key, 'f'), { message: 'is not the key of the certificate in f' })
  t.throws(() => checkPair(OTHER.cert + PAIR.cert, PAIR.key, 'f'), { message: 'belongs to a later certificate in f' })
  t.throws(() => certificatesIn('nothing'), { message: 'holds no certificate in PEM form' })
  const broken = `${PAIR.cert}-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n`
  t.throws(() => certificatesIn(broken), { message: 'holds a certificate that cannot be read' })
  t.end()
})

void test('what OpenSSL would refuse at a handshake is refused before', (t) => {
  const weak = AUTHORITY.issue({ keys: generateKeyPairSync('rsa', { modulusLength: 1024 }) })
  t.doesNotThrow(() => checkPair(weak.cert, weak.key, 'f'))
  t.throws(() => checkAcceptable(weak.cert, weak.key), { message: 'is not accepted by OpenSSL (ee key too small)', hint: /2048/ })
  t.doesNotThrow(() => checkAcceptable(PAIR.cert, PAIR.key))
  t.end()
})

void test('a chain is valid while all of it is', (t) => {
  const below = AUTHORITY.intermediate('below', inDays(20))
  const [leaf, soon] = [below.issue({ until: inDays(80) }), inDays(20).getTime()]
  const { until } = validityOf(leaf.cert + below.cert)
  t.ok(Math.abs(until - soon) < HOUR, new Date(until).toISOString())
  t.ok(Math.abs(validityOf(leaf.cert).until - inDays(80).getTime()) < HOUR)
  t.end()
})

void test('a certificate is reported before it expires: two weeks, or a sixth of a short life', (t) => {
  const day = 24 * HOUR
  const ofDays = (days: number) => ({ from: 0, until: days * day })
  for (const [life, left, says] of [
    [90, 15, null],
    [90, 14, 'expires at 1970-04-01T00:00:00Z'],
    [365, 15, null],
    [1, 0.17, null],
    [1, 0.16, 'expires at 1970-01-02T00:00:00Z'],
    [90, 0, 'expired at 1970-04-01T00:00:00Z'],
    [90, -1, 'expired at 1970-04-01T00:00:00Z'],
  ] as const) {
    t.equal(validityWarning(ofDays(life), (life - left) * day), says, `${life} days, ${left} left`)
  }
  t.equal(validityWarning({ from: day, until: 90 * day }, 0), 'is not valid before 1970-01-02T00:00:00Z')
  t.end()
})
