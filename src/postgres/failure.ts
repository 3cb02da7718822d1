/** Describes failures of the database server to an operator. */
import pg from 'pg'
import { placeOf, type PostgresSettings } from './settings.ts'

export class PostgresFailure extends Error {
  override readonly name = 'PostgresFailure'
  /** The SQLSTATE, or the network or TLS code. */
  readonly code: string | null
  /** True if the server refused the statement; false if it was not reached. */
  readonly isAnswer: boolean

  constructor(message: string, { code, isAnswer }: Pick<PostgresFailure, 'code' | 'isAnswer'> = { code: null, isAnswer: false }) {
    super(message)
    this.code = code
    this.isAnswer = isAnswer
  }
}

/** Advice by code (PostgreSQL, appendix A; Node.js, errors). */
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there: check host and port, and that the server runs',
  ENOTFOUND: 'there is no such host: check its name',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
  ENOENT: 'there is no such socket: check the folder, and that the server runs',
  EHOSTUNREACH: 'there is no way to the host',
  ENETUNREACH: 'there is no way to the host',
  ECONNRESET: 'the connection broke',
  EPIPE: 'the connection broke',
  ETIMEDOUT: 'the host does not answer: check host, port and firewalls',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name: write the host as the certificate has it',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is not trusted: name its CA in ownership.postgres.ca',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is not trusted: name its CA in ownership.postgres.ca',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is not trusted: name its CA in ownership.postgres.ca',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is not trusted: name its CA in ownership.postgres.ca',
  '25P03': 'this process stood still for too long in the middle of a transaction',
  '25006': 'it takes no writes: it is a standby, or set to read only',
  '28000': 'it does not let this user in from here: check the user, TLS and its pg_hba.conf',
  '28P01': 'the password is wrong: check ownership.postgres.password',
  '3D000': 'there is no such database: create it',
  '42501': 'the user lacks a right: let it create the schema, or own one that is there',
  '42P01': 'a table is missing: restore a backup, or start with another schema',
  '3F000': 'the schema is missing: restore a backup, or start with another schema',
  '53100': 'its disk is full',
  '53300': 'it has no connection left: raise its max_connections, or lower ownership.postgres.pool',
  '55P03': 'another process holds a lock for too long',
  '57014': 'a statement took longer than ownership.postgres.statementTimeout',
  '57P01': 'it is being shut down',
  '57P02': 'it crashed, and comes back by itself',
  '57P03': 'it is starting up or shutting down',
}

const SAYINGS: readonly (readonly [RegExp, string])[] = [
  [
    /^timeout exceeded when trying to connect/,
    'no connection became free in time: it is slow, or ownership.postgres.pool too small',
  ],
  [
    /^(?:Connection terminated due to connection timeout|timeout expired)/,
    'the host does not answer: check host, port and firewalls',
  ],
  [/^Query read timeout/, 'it does not answer'],
  [/^Connection terminated|not queryable/, 'the connection broke'],
  [/^The server does not support SSL/, 'it speaks no TLS: set it up there; only within one machine is tls: off safe'],
  [/client password must be/, 'it asks for a password: set ownership.postgres.password'],
]

/** The message contains no password: neither the driver nor a server repeats it. */
export function failureOf(error: unknown, settings: PostgresSettings): PostgresFailure {
  if (error instanceof PostgresFailure) return error
  const code = codeOf(error)
  const said = error instanceof Error ? error.message : ''
  const advice = (code === null ? undefined : ADVICE[code]) ?? SAYINGS.find(([pattern]) => pattern.test(said))?.[1]
  const about = advice ?? (said === '' ? 'it failed' : said)
  const message = `${placeOf(settings)}: ${about}${code === null ? '' : ` (${code})`}`
  return new PostgresFailure(message, { code, isAnswer: error instanceof pg.DatabaseError })
}

function codeOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return null
  if ('code' in error && typeof error.code === 'string') return error.code
  // No address of a host with several addresses was reachable.
  if (error instanceof AggregateError) return codeOf(error.errors[0])
  return null
}
