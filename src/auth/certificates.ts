/** Checks the private certificate authorities that operators configure. */
import { X509Certificate } from 'node:crypto'

/** OpenSSL reads an unreadable file as one without certificates, and then no issuer can be reached. @throws Error */
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
