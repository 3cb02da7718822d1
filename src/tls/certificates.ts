/** Reads certificates and private keys in PEM form, and says what is wrong with them. No message contains a part of a key. */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'
import { createSecureContext } from 'node:tls'

/** The fault of a file, and the step that corrects it. */
export class UnusableFile extends Error {
  override readonly name = 'UnusableFile'
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g

/** OpenSSL reads an unreadable file as one without certificates. @throws UnusableFile */
export function certificatesIn(pem: string): readonly [X509Certificate, ...X509Certificate[]] {
  const [first, ...more] = pem.match(CERTIFICATE) ?? []
  if (first === undefined) throw new UnusableFile('holds no certificate in PEM form')
  return [certificateIn(first), ...more.map(certificateIn)]
}

function certificateIn(block: string): X509Certificate {
  try {
    return new X509Certificate(block)
  } catch {
    throw new UnusableFile('holds a certificate that cannot be read')
  }
}

/** @throws UnusableFile */
export function checkPrivateKey(pem: string): void {
  privateKeyIn(pem)
}

function privateKeyIn(pem: string): KeyObject {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(pem)) {
    throw new UnusableFile(
      'is encrypted',
      'the gateway has no passphrase: write the key with openssl pkey -in FILE -out NEW, and protect it by the permissions of the file',
    )
  }
  try {
    return createPrivateKey(pem)
  } catch {
    throw new UnusableFile('holds no private key in PEM form', 'write the key of the certificate, in PKCS#8, PKCS#1 or SEC1 form')
  }
}

/** @param certificateFile its name, for messages. Both texts were checked alone. @throws UnusableFile about the key's file */
export function checkPair(certificates: string, key: string, certificateFile: string): void {
  const [leaf, ...chain] = certificatesIn(certificates)
  const privateKey = privateKeyIn(key)
  if (leaf.checkPrivateKey(privateKey)) return
  if (chain.some((one) => one.checkPrivateKey(privateKey))) {
    throw new UnusableFile(
      `belongs to a later certificate in ${certificateFile}`,
      'write the certificate of this key first in that file, and its intermediates after it',
    )
  }
  throw new UnusableFile(
    `is not the key of the certificate in ${certificateFile}`,
    'write the two files that were issued together; while they are replaced one by one, this ends with the second',
  )
}

/** OpenSSL has requirements of its own, such as a minimum length of keys. @throws UnusableFile */
export function checkAcceptable(certificates: string, key: string): void {
  try {
    createSecureContext({ cert: certificates, key })
  } catch (error) {
    const reason = error instanceof Error && 'reason' in error ? String(error.reason) : 'unknown reason'
    throw new UnusableFile(
      `is not accepted by OpenSSL (${reason})`,
      'issue a certificate for an ECDSA key, or for an RSA key of at least 2048 bits, signed with SHA-256 or better',
    )
  }
}

/** Milliseconds since the epoch. */
export interface Validity {
  readonly from: number
  readonly until: number
}

/** The time in which every certificate of a chain is valid: a client verifies all of them. */
export function validityOf(certificates: string): Validity {
  const chain = certificatesIn(certificates)
  return {
    from: chain.reduce((latest, { validFromDate }) => Math.max(latest, validFromDate.getTime()), -Infinity),
    until: chain.reduce((earliest, { validToDate }) => Math.min(earliest, validToDate.getTime()), Infinity),
  }
}

const DAY_MS = 86_400_000
const LONGEST_NOTICE_MS = 14 * DAY_MS
/** Issuers such as cert-manager renew after two thirds of the lifetime: half of the rest is left then. */
const PART_OF_LIFETIME = 6

/** What an operator has to know about the time of a certificate; null while there is nothing to do. */
export function validityWarning({ from, until }: Validity, now: number): string | null {
  if (now >= until) return `expired at ${iso(until)}`
  if (now < from) return `is not valid before ${iso(from)}`
  const notice = Math.min(LONGEST_NOTICE_MS, (until - from) / PART_OF_LIFETIME)
  return until - now > notice ? null : `expires at ${iso(until)}`
}

function iso(time: number): string {
  return new Date(time).toISOString().replace(/\.\d+Z$/, 'Z')
}
