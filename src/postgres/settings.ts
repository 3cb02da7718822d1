/** Which PostgreSQL server, and how it is spoken to. */

/** As the configuration says it. Times are in milliseconds. */
export interface PostgresSettings {
  /** A name or an address, or the absolute path of the folder of a Unix socket. */
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  /** Null where the server asks for none. */
  readonly password: string | null
  /** Where the tables are: of a-z, 0-9 and _. */
  readonly schema: string
  /** `verify` wants a certificate for the name of the host. */
  readonly tls: 'verify' | 'off'
  /** A PEM file with the private CA of the certificate; null for the public ones. */
  readonly ca: string | null
  /** The most connections that queries use. */
  readonly pool: number
  /** To open a connection, and to wait for one that is free. */
  readonly connectTimeout: number
  readonly statementTimeout: number
}

/** The database in words for an operator, without who signs in to it. */
export function placeOf({ host, port, database }: PostgresSettings): string {
  const shown = host.includes(':') ? `[${host}]` : host
  return `database ${database} at ${shown}:${port}`
}

/** The schema as it stands in a statement. It may be a word of SQL. */
export function quoted(schema: string): string {
  return `"${schema.replaceAll('"', '""')}"`
}
