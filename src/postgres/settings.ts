/** Which PostgreSQL server the gateway uses, and how it connects. */

/** As in the configuration. Times are in milliseconds. */
export interface PostgresSettings {
  /** A name, an address, or the absolute path of a Unix socket's folder. */
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password: string | null
  readonly schema: string
  readonly tls: 'verify' | 'off'
  /** A PEM file with the certificate's private CA; null for the public CAs. */
  readonly ca: string | null
  readonly pool: number
  /** For opening a connection, and for waiting for a free one. */
  readonly connectTimeout: number
  readonly statementTimeout: number
}

export function placeOf({ host, port, database }: PostgresSettings): string {
  const shown = host.includes(':') ? `[${host}]` : host
  return `database ${database} at ${shown}:${port}`
}

/** The schema name may be an SQL keyword. */
export function quoted(schema: string): string {
  return `"${schema.replaceAll('"', '""')}"`
}
