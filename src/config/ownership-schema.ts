/** The ownership of the configuration: where it is kept, and how a PostgreSQL server is spoken to. */
import { z } from 'zod'
import { isLoopbackHost } from '../core/addresses.ts'
import { duration } from '../document/quantities.ts'

const STORE_HINT = 'write sqlite:./data/ownership.db or postgres://user@host/database'

/** What a store on PostgreSQL begins with. */
const POSTGRES = /^postgres(?:ql)?:/

const DEFAULT_PORT = 5432

/** What a PostgreSQL URL says. */
interface Place {
  /** A name or address without brackets, or the absolute path of a socket's folder. */
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password: string | null
}

/** A PostgreSQL URL, read; or what is wrong with it, in words that quote nothing of it: a password may stand in it. */
function placeOf(text: string): Place | string {
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

const patience = duration
  .refine((value) => value >= 100, 'is too short | 100ms at least')
  .refine((value) => value <= 60_000, 'is too long | at most 60s: callers wait meanwhile')

const postgresSchema = z.strictObject({
  password: z.string().min(1).optional().describe('Of the user that the store names; write "${file:…}".'),
  schema: z
    .string()
    .regex(/^[a-z_][a-z0-9_]{0,62}$/, 'is not a schema | a-z, 0-9 and _, at most 63 of them, no digit first')
    .refine((name) => !name.startsWith('pg_'), 'is a name that PostgreSQL keeps for itself')
    .default('threadwarden')
    .describe('Where its tables are; made at the first start if the user may.'),
  tls: z
    .enum(['verify', 'off'])
    .optional()
    .describe("verify wants a certificate for the host's name. By default off for this machine, verify for all others."),
  ca: z.string().min(1).optional().describe("A PEM file with the private CA of the server's certificate."),
  pool: z
    .int()
    .min(1, 'is not a number of connections | 1 to 200')
    .max(200, 'is not a number of connections | 1 to 200')
    .default(10)
    .describe('The most connections that queries use; one more listens for changes.'),
  connectTimeout: patience.prefault('5s').describe('To open a connection, and to wait for one that is free.'),
  statementTimeout: patience.prefault('5s').describe('For one statement.'),
  cache: z
    .int()
    .min(0)
    .max(10_000_000)
    .default(100_000)
    .describe('Of how many threads it is remembered who may use them; 0: none. A change elsewhere is seen within a second.'),
})

const POSTGRES_DEFAULTS = postgresSchema.parse({})

/** The keys of it that say where ownership is kept. */
export const storeKeys = {
  store: z
    .string()
    .regex(/^sqlite:.+$|^postgres(?:ql)?:/, `is not a store | ${STORE_HINT}`)
    .superRefine((text, context) => {
      const fault = POSTGRES.test(text) ? placeOf(text) : null
      if (typeof fault === 'string') context.addIssue({ code: 'custom', message: fault })
    })
    .default('sqlite:./data/ownership.db')
    .describe('Where it is written whose thread is whose: sqlite: and a path, or postgres://user@host:port/database.'),
  postgres: postgresSchema.optional().describe('How the PostgreSQL server is spoken to that store names.'),
}

/** What of the ownership says where it is kept. */
interface StoreKeys {
  readonly store: string
  readonly postgres?: z.output<typeof postgresSchema> | undefined
}

/** Faults of the keys of the store together: of which key, and what. */
export function storeFault({ store, postgres }: StoreKeys): { readonly path: string[]; readonly message: string } | null {
  if (postgres === undefined) return null
  if (!POSTGRES.test(store)) {
    return { path: ['postgres'], message: 'goes with a PostgreSQL store alone | take it out, or write store: postgres://…' }
  }
  const place = placeOf(store)
  if (typeof place === 'string') return null
  if (postgres.password !== undefined && place.password !== null) {
    return { path: ['postgres', 'password'], message: 'stands in store, too | keep this one' }
  }
  if (postgres.ca !== undefined && tlsOf(place, postgres.tls) === 'off') {
    return { path: ['postgres', 'ca'], message: 'has no effect with tls: off | write tls: verify' }
  }
  return null
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

function tlsOf(place: Place, tls: 'verify' | 'off' | undefined): 'verify' | 'off' {
  return tls ?? (isLocalServer(place) ? 'off' : 'verify')
}

/** True where a password stands in the URL of the store itself. */
export function hasPasswordInStore({ store }: StoreKeys): boolean {
  return POSTGRES.test(store) && URL.canParse(store) && new URL(store).password !== ''
}
