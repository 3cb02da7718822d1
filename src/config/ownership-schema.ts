/** The schema of the ownership settings: the store, and how the gateway connects to a PostgreSQL server. */
import { z } from 'zod'
import { duration, text } from '../document/quantities.ts'
import { placeOf, POSTGRES, POSTGRES_DEFAULTS, tlsOf, type StoreKeys } from './store-place.ts'

const STORE_HINT = 'write sqlite:./data/ownership.db or postgres://user@host/database'

const retry = duration
  .refine((value) => value >= 100, 'is too short | 100ms at least')
  .refine((value) => value <= 60_000, 'is too long | at most 60s: callers wait meanwhile')

const postgresSchema = z.strictObject({
  password: text.optional().describe('The password of the user in ownership.store; write "${file:…}".'),
  schema: z
    .string()
    .regex(/^[a-z_][a-z0-9_]{0,62}$/, 'is not a schema | a-z, 0-9 and _, at most 63 of them, no digit first')
    .refine((name) => !name.startsWith('pg_'), 'is a name that PostgreSQL keeps for itself')
    .default(POSTGRES_DEFAULTS.schema)
    .describe('The schema of the tables. The gateway creates it if its user may.'),
  tls: z
    .enum(['verify', 'off'])
    .optional()
    .describe('verify requires a certificate for the host name. The default is off on this machine, otherwise verify.'),
  ca: text.optional().describe("A PEM file with the private CA of the server's certificate."),
  pool: z
    .int()
    .min(1, 'is not a number of connections | 1 to 200')
    .max(200, 'is not a number of connections | 1 to 200')
    .default(POSTGRES_DEFAULTS.pool)
    .describe('The maximum number of connections for queries. One more connection listens for changes.'),
  connectTimeout: retry.prefault('5s').describe('The time to open a connection, or to get a free one.'),
  statementTimeout: retry.prefault('5s').describe('The time for one statement.'),
  cache: z
    .int()
    .min(0)
    .max(10_000_000)
    .default(POSTGRES_DEFAULTS.cache)
    .describe(
      'For how many threads the gateway caches who may access them; 0 for none. A change by another gateway is visible within a second.',
    ),
})

export const storeKeys = {
  store: z
    .string()
    .regex(/^sqlite:.+$|^postgres(?:ql)?:/, `is not a store | ${STORE_HINT}`)
    .superRefine((text, context) => {
      const fault = POSTGRES.test(text) ? placeOf(text) : null
      if (typeof fault === 'string') context.addIssue({ code: 'custom', message: fault })
    })
    .default('sqlite:./data/ownership.db')
    .describe(
      'The ownership store: sqlite: and a path, or postgres://user@host:port/database. The environment variable THREADWARDEN_DATA moves the default file to another folder.',
    ),
  postgres: postgresSchema.optional().describe('How the gateway connects to the PostgreSQL server in ownership.store.'),
}

export function storeFault({ store, postgres }: StoreKeys): { readonly path: string[]; readonly message: string } | null {
  if (postgres === undefined) return null
  if (!POSTGRES.test(store)) {
    return { path: ['postgres'], message: 'needs a PostgreSQL store | remove it, or write store: postgres://…' }
  }
  const place = placeOf(store)
  if (typeof place === 'string') return null
  if (postgres.password !== undefined && place.password !== null) {
    return { path: ['postgres', 'password'], message: 'is also in ownership.store | remove it there' }
  }
  if (postgres.ca !== undefined && tlsOf(place, postgres.tls) === 'off') {
    return { path: ['postgres', 'ca'], message: 'has no effect with tls: off | write tls: verify' }
  }
  return null
}
