/** A private certificate authority that issues what a test asks for, written by hand with node:crypto (RFC 5280, DER of X.690). */
import { createHash, createPrivateKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { isIP } from 'node:net'

/** A certificate and its key, in PEM form. */
export interface Issued {
  readonly cert: string
  readonly key: string
}

/** What a certificate says; what is left out is as a server or client needs it. */
export interface Wanted {
  readonly name?: string
  /** Host names and addresses; by default 127.0.0.1. */
  readonly hosts?: readonly string[]
  readonly from?: Date
  readonly until?: Date
  readonly usage?: 'server' | 'client'
  /** Of its key; by default a key on the curve P-256. */
  readonly keys?: { readonly publicKey: KeyObject; readonly privateKey: KeyObject }
}

/** An authority, in whose name certificates are issued. */
export interface Authority {
  readonly cert: string
  readonly issue: (wanted?: Wanted) => Issued
  /** An authority below this one. */
  readonly intermediate: (name: string, until?: Date) => Authority
}

const DAY_MS = 86_400_000

const OIDS = {
  commonName: '550403',
  basicConstraints: '551d13',
  keyUsage: '551d0f',
  extendedKeyUsage: '551d25',
  subjectAltName: '551d11',
  subjectKeyIdentifier: '551d0e',
  authorityKeyIdentifier: '551d23',
  server: '2b06010505070301',
  client: '2b06010505070302',
  ecdsaWithSha256: '2a8648ce3d040302',
} as const

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts)
const oid = (name: keyof typeof OIDS): Buffer => der(0x06, Buffer.from(OIDS[name], 'hex'))
const TRUE = der(0x01, Buffer.from([0xff]))
const ALGORITHM = sequence(oid('ecdsaWithSha256'))

/** UTCTime before 2050, GeneralizedTime after it (RFC 5280 §4.1.2.5). */
function time(date: Date): Buffer {
  const text = date.toISOString().replace(/[-:T]/g, '').replace(/\..*/, 'Z')
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(text.slice(2))) : der(0x18, Buffer.from(text))
}

function nameOf(text: string): Buffer {
  return sequence(der(0x31, sequence(oid('commonName'), der(0x0c, Buffer.from(text)))))
}

function extension(name: keyof typeof OIDS, isCritical: boolean, value: Buffer): Buffer {
  return sequence(oid(name), ...(isCritical ? [TRUE] : []), der(0x04, value))
}

function hostName(host: string): Buffer {
  return isIP(host) === 4 ? der(0x87, Buffer.from(host.split('.').map(Number))) : der(0x82, Buffer.from(host))
}

function pem(label: string, bytes: Buffer): string {
  return `-----BEGIN ${label}-----\n${bytes.toString('base64').replace(/.{1,64}/g, '$&\n')}-----END ${label}-----\n`
}

const idOf = (key: KeyObject): Buffer =>
  createHash('sha1')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest()

interface Signed {
  readonly subject: string
  readonly issuer: string
  readonly publicKey: KeyObject
  readonly from: Date
  readonly until: Date
  readonly extensions: readonly Buffer[]
}

function certificate(signed: Signed, issuerKey: KeyObject): string {
  const { subject, issuer, publicKey, from, until, extensions } = signed
  const serial = randomBytes(16)
  serial[0] = 1
  const toSign = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    ALGORITHM,
    nameOf(issuer),
    sequence(time(from), time(until)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  )
  const signature = sign('sha256', toSign, issuerKey)
  return pem('CERTIFICATE', sequence(toSign, ALGORITHM, der(0x03, Buffer.from([0]), signature)))
}

const newKeys = (): NonNullable<Wanted['keys']> => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const yesterday = (): Date => new Date(Date.now() - DAY_MS)

/** In days from now; a certificate that has expired has a negative number. */
export function inDays(days: number): Date {
  return new Date(Date.now() + days * DAY_MS)
}

const keyPem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }) as string

/** The key of a certificate, encrypted. */
export function encrypted(key: string): string {
  return createPrivateKey(key).export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' }) as string
}

export function makeAuthority(name = 'test authority'): Authority {
  const keys = newKeys()
  return authorityWith(name, keys, name, keys.privateKey, inDays(3650))
}

function authorityWith(
  name: string,
  keys: NonNullable<Wanted['keys']>,
  above: string,
  keyAbove: KeyObject,
  until: Date,
): Authority {
  const ofAuthority = [
    extension('basicConstraints', true, sequence(TRUE)),
    extension('keyUsage', true, der(0x03, Buffer.from([1, 0x06]))),
    extension('subjectKeyIdentifier', false, der(0x04, idOf(keys.publicKey))),
  ]
  const said = { subject: name, issuer: above, publicKey: keys.publicKey, from: inDays(-3650), until }
  return {
    cert: certificate({ ...said, extensions: ofAuthority }, keyAbove),
    issue({ name: subject = 'test', hosts = ['127.0.0.1'], from = yesterday(), until: end = inDays(90), usage, keys: own } = {}) {
      const { publicKey, privateKey } = own ?? newKeys()
      const usages = usage === undefined ? [oid('server'), oid('client')] : [oid(usage)]
      const extensions = [
        extension('extendedKeyUsage', false, sequence(...usages)),
        extension('subjectAltName', false, sequence(...hosts.map(hostName))),
        extension('authorityKeyIdentifier', false, sequence(der(0x80, idOf(keys.publicKey)))),
      ]
      const leaf = { subject, issuer: name, publicKey, from, until: end, extensions }
      return { cert: certificate(leaf, keys.privateKey), key: keyPem(privateKey) }
    },
    intermediate: (below, end = inDays(365)) => authorityWith(below, newKeys(), name, keys.privateKey, end),
  }
}
