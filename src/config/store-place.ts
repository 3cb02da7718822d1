/** Reads which store a configuration names, also for processes that do not load the configuration checks. */
import { isLoopbackHost } from '../core/wire/addresses.ts'

export const POSTGRES = /^postgres(?:ql)?:/

/** The connection to a PostgreSQL server; times are in milliseconds. */
export interface PostgresKeys {
  readonly password?: string | undefined
  readonly schema: string
  readonly tls?: 'verify' | 'off' | undefined
  readonly ca?: string | undefined
  readonly pool: number
  readonly connectTimeout: number
  readonly statementTimeout: number
  readonly cache: number
}

export interface StoreKeys {
  readonly store: string
  readonly postgres?: PostgresKeys | undefined
}

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

/** Reads a PostgreSQL URL; on error returns a text that quotes nothing of the URL, which may contain a password. */
export function placeOf(text: string): Place | string {
  const form = 'is not a PostgreSQL URL | write postgres://user@host/database, with special characters percent-encoded'
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

/** Null for invalid percent-encoding, or a character that no name has. */
function decoded(text: string): string | null {
  try {
    const plain = decodeURIComponent(text)
    return plain.includes('\0') ? null : plain
  } catch {
    return null
  }
}

/** `ownership` must have passed the schema. The result is a file, or settings (src/postgres/settings.ts) and a cache size. */
export function storeOf({ store, postgres = POSTGRES_DEFAULTS }: StoreKeys) {
  if (store.startsWith('sqlite:')) return { kind: 'sqlite', file: store.slice('sqlite:'.length) } as const
  const place = placeOf(store)
  if (typeof place === 'string') throw new TypeError(`ownership.store ${place}`)
  const { cache, password = place.password, tls, ca = null, ...rest } = postgres
  return { kind: 'postgres', settings: { ...rest, ...place, password, tls: tlsOf(place, tls), ca }, cache } as const
}

export function isLocalServer({ host }: { readonly host: string }): boolean {
  return host.startsWith('/') || isLoopbackHost(host.includes(':') ? `[${host}]` : host)
}

/** Where the configuration does not say it, TLS is used except on this machine. */
export function tlsOf(place: Place, tls: 'verify' | 'off' | undefined): 'verify' | 'off' {
  return tls ?? (isLocalServer(place) ? 'off' : 'verify')
}

export function hasPasswordInStore({ store }: StoreKeys): boolean {
  return POSTGRES.test(store) && URL.canParse(store) && new URL(store).password !== ''
}
