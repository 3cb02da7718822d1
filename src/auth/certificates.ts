/** Private certificate authorities, as operators name them. */
import { X509Certificate } from 'node:crypto'

/**
 * Checks a file of certificates: OpenSSL takes one that it can't read for one without any, and then nothing can be reached.
 * @param pem the text of the file
 * @throws Error with what is wrong with it
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
