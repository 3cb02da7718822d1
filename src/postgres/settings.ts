/** Which PostgreSQL server the gateway uses, and how it connects. */

/** As in the configuration. Times are in milliseconds. */
export interface PostgresSettings {
  /** A name, an address, or the absolute path of a Unix socket's folder. */
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  /** Null if the server asks for none. */
  readonly password: string | null
  /** The schema of the tables: characters a-z, 0-9 and _. */
  readonly schema: string
  /** `verify` requires a certificate for the name of the host. */
  readonly tls: 'verify' | 'off'
  /** A PEM file with the private CA of the certificate; null for the public CAs. */
  readonly ca: string | null
  readonly pool: number
  /** For opening a connection, and for waiting for a free one. */
  readonly connectTimeout: number
  readonly statementTimeout: number
}

/** For an operator, without the user. */
export function placeOf({ host, port, database }: PostgresSettings): string {
  const shown = host.includes(':') ? `[${host}]` : host
  return `database ${database} at ${shown}:${port}`
}

/** The schema may be a word of SQL. */
export function quoted(schema: string): string {
  return `"${schema.replaceAll('"', '""')}"`
}
