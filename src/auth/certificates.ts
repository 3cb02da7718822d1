/** Checks the private certificate authorities that operators configure. */
import { X509Certificate } from 'node:crypto'

/**
 * OpenSSL takes an unreadable file for one without certificates, and then no issuer can be reached.
 * @param pem the text of the file
 * @throws Error with the problem
 */
export function checkCertificates(pem: string): void {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0) throw new Error('holds no certificate in PEM form')
  blocks.forEach(certificateIn)
}

function certificateIn(block: string): X509Certificate {
  try {
    return new X509Certificate(block)
  } catch {
    throw new Error('holds a certificate that cannot be read')
  }
}
