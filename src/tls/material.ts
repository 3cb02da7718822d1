/** Reads the files of the TLS settings, for the public listener and for connections to an upstream. */
import { constants } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { UpstreamTlsFiles } from '../config/mounts.ts'
import type { Config } from '../config/schema.ts'
import type { Sources } from '../document/sources.ts'
import type { ListenerTls, UpstreamTls } from './settings.ts'

const { SSL_OP_NO_RENEGOTIATION, SSL_OP_NO_TICKET } = constants

/** @throws Error for files that have changed since they were checked */
export function listenerTls(tls: Config['listen']['tls'], sources: Sources): ListenerTls | null {
  if (tls === undefined) return null
  const { certificateFile, keyFile, minVersion, clientCertificates } = tls
  const ca = clientCertificates === undefined ? undefined : sources.text(clientCertificates.ca)
  const made = {
    cert: sources.text(certificateFile),
    key: sources.text(keyFile),
    ca,
    minVersion,
    // A resumed session is not verified again: it would outlive the client's certificate, and each use renews its ticket.
    secureOptions: SSL_OP_NO_RENEGOTIATION | (ca === undefined ? 0 : SSL_OP_NO_TICKET),
  }
  // Throws here what would otherwise fail when the settings are applied.
  createSecureContext(made)
  return made
}

/** @throws Error for a file that cannot be read, or has changed since it was checked */
export function upstreamTls(
  { ca, certificateFile, keyFile, minVersion, serverName }: UpstreamTlsFiles,
  sources: Sources,
): UpstreamTls {
  const textOf = (file: string | undefined): string | undefined => (file === undefined ? undefined : sources.text(file))
  return { ca: textOf(ca), cert: textOf(certificateFile), key: textOf(keyFile), minVersion, servername: serverName }
}
