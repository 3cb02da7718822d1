/** Which store a configuration names: read by every process that opens it, without what checks a configuration. */
import { isLoopbackHost } from '../core/wire/addresses.ts'

/** What a store on PostgreSQL begins with. */
export const POSTGRES = /^postgres(?:ql)?:/

/** How a PostgreSQL server is spoken to; times are in milliseconds. */
export interface PostgresKeys {
  /** Of the user that the store names. */
  readonly password?: string | undefined
  readonly schema: string
  readonly tls?: 'verify' | 'off' | undefined
  readonly ca?: string | undefined
  readonly pool: number
  readonly connectTimeout: number
  readonly statementTimeout: number
  readonly cache: number
}

/** What of the ownership says where it is kept. */
export interface StoreKeys {
  readonly store: string
  readonly postgres?: PostgresKeys | undefined
}

/** What holds where the configuration says nothing. */
export const POSTGRES_DEFAULTS = {
  schema: 'threadwarden',
  pool: 10,
  connectTimeout: 5000,
  statementTimeout: 5000,
  cache: 100_000,
} as const satisfies PostgresKeys

const DEFAULT_PORT = 5432

export interface Place {
  /** A name or address without brackets, or the absolute path of a socket's folder. */
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password: string | null
}

/** A PostgreSQL URL, read; or what is wrong with it, in words that quote nothing of it: a password may stand in it. */
export function placeOf(text: string): Place | string {
  const form = 'is not a PostgreSQL URL | write postgres://user@host/database, with what is special in it percent-encoded'
  if (!URL.canParse(text)) return form
  const url = new URL(text)
  if (url.search !== '' || url.hash !== '') return 'takes no parameters | the keys of ownership.postgres say the rest'
  const [user = '', password = '', host = '', database = ''] = [
    url.username,
    url.password,
    url.hostname,
    url.pathname.slice(1),
  ].map(decoded)
  if (user === null || password === null || host === null || database === null) return form
  if (user === '') return 'names no user | write postgres://user@host/database'
  if (!/^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]|\/.+)$/.test(host)) return 'names no host | write postgres://user@host/database'
  if (database === '' || url.pathname.includes('/', 1)) return 'names no database | write postgres://user@host/database'
  return {
    host: host.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? DEFAULT_PORT : Number(url.port),
    database,
    user,
    password: password === '' ? null : password,
  }
}

/** Null for what is no percent-encoding, or holds a character that no name has. */
function decoded(text: string): string | null {
  try {
    const plain = decodeURIComponent(text)
    return plain.includes('\0') ? null : plain
  } catch {
    return null
  }
}

/**
 * The store that a configuration names. With `sqlite` its file; with `postgres` what src/postgres/settings.ts describes, and
 * the size of the cache.
 * @param ownership from a configuration that passed the schema
 */
export function storeOf({ store, postgres = POSTGRES_DEFAULTS }: StoreKeys) {
  if (store.startsWith('sqlite:')) return { kind: 'sqlite', file: store.slice('sqlite:'.length) } as const
  const place = placeOf(store)
  if (typeof place === 'string') throw new TypeError(`ownership.store ${place}`)
  const { cache, password = place.password, tls, ca = null, ...rest } = postgres
  return { kind: 'postgres', settings: { ...rest, ...place, password, tls: tlsOf(place, tls), ca }, cache } as const
}

/** True for a server on this machine. */
export function isLocalServer({ host }: { readonly host: string }): boolean {
  return host.startsWith('/') || isLoopbackHost(host.includes(':') ? `[${host}]` : host)
}

/** How the server is spoken to where the configuration leaves it open: on this machine without TLS. */
export function tlsOf(place: Place, tls: 'verify' | 'off' | undefined): 'verify' | 'off' {
  return tls ?? (isLocalServer(place) ? 'off' : 'verify')
}

/** True where a password stands in the URL of the store itself. */
export function hasPasswordInStore({ store }: StoreKeys): boolean {
  return POSTGRES.test(store) && URL.canParse(store) && new URL(store).password !== ''
}
