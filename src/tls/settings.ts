/** The content of TLS files, as listeners and connections use it: certificates and keys in PEM form. */
import type { SecureContextOptions } from 'node:tls'

export type MinVersion = 'TLSv1.2' | 'TLSv1.3'

/** The part of a listener's TLS that a reload replaces. */
export interface ListenerTls extends SecureContextOptions {
  /** With its chain. */
  readonly cert: string
  readonly key: string
  readonly minVersion: MinVersion
  /** The CA of client certificates; undefined where none is required. */
  readonly ca: string | undefined
}

export interface UpstreamTls {
  /** Undefined for the authorities that Node trusts. */
  readonly ca: string | undefined
  /** The client certificate with its chain, and its key. */
  readonly cert: string | undefined
  readonly key: string | undefined
  readonly minVersion: MinVersion
  /** The name to verify; undefined for that of the URL. */
  readonly servername: string | undefined
}
