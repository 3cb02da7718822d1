/** The gate of authentication as a configuration gives it, with the key files in a folder of their own. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { makeAuthenticate, type Authenticate } from '../../src/auth/authenticate.ts'
import { makeIssuers, type Issuer } from '../../src/auth/issuer.ts'
import { configSchema } from '../../src/config/schema.ts'
import { Sources } from '../../src/document/sources.ts'
import { makeFolder } from './gateway.ts'
import { PAIRS, pemOf, token, type Part } from './signing.ts'

export const ISSUER = 'https://login.example.com/'

/** What the gate is made of. */
export interface GateOptions {
  readonly mode?: 'required' | 'optional' | 'off'
  readonly clockTolerance?: string
  /** Milliseconds since the epoch, for the pauses between fetches. */
  readonly clock?: () => number
  /** How many verified tokens are remembered; none, unless a test is about that. */
  readonly tokenCache?: number
  /** Milliseconds since the epoch, for tokens. */
  readonly now?: () => number
  /** Gets the message of every fetch that failed. */
  readonly failures?: string[]
  /** Takes the user ids of clients that came with a token of their own. */
  readonly clients?: string[]
  /** Takes the issuers, for a test that renews their keys as the gateway does every second. */
  readonly made?: Issuer[]
}

/** Issuers as they stand in a configuration; key files are given as `{ publicKey: pem }` or `{ secret: text }`. */
export function issuersOf(t: Pick<Test, 'teardown'>, issuers: Readonly<Record<string, Part>>): Readonly<Record<string, Part>> {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const files = Object.entries(issuers).map(([key, { publicKey, secret, ...issuer }]) => {
    const file = join(folder, key)
    if (publicKey !== undefined || secret !== undefined) writeFileSync(file, (publicKey ?? secret) as string | Buffer)
    const source = publicKey !== undefined ? { publicKeyFile: file } : secret !== undefined ? { secretFile: file } : {}
    return [key, { issuer: ISSUER, audiences: ['chat'], ...issuer, ...source }]
  })
  return Object.fromEntries(files) as Record<string, Part>
}

/** A gate for these issuers, given as issuersOf takes them. */
export function gate(
  t: Pick<Test, 'teardown'>,
  issuers: Readonly<Record<string, Part>>,
  options: GateOptions = {},
): Authenticate {
  const { mode = 'required', clockTolerance = '30s', clock = () => 0, failures = [], clients = [] } = options
  const { authentication } = configSchema.parse({
    version: 1,
    upstream: { url: 'http://127.0.0.1:1', basePath: '/' },
    authentication: { mode, clockTolerance, issuers: issuersOf(t, issuers) },
    ownership: { unknownThread: 'deny' },
  })
  const made = makeIssuers(authentication, {
    sources: new Sources(),
    clock,
    onFetchFailure: (_, message) => void failures.push(message),
  })
  options.made?.push(...made)
  return makeAuthenticate({
    mode,
    issuers: made,
    tokenCache: options.tokenCache ?? 0,
    // Pauses between fetches are of the test's time; tokens are of this one.
    clock: options.now ?? Date.now,
    onClientToken: (userId) => void clients.push(userId),
  })
}

/** A gate for RS256 tokens of one issuer, with some of its configuration changed. */
export function rsaGate(t: Pick<Test, 'teardown'>, changes: Part = {}, options: GateOptions = {}): Authenticate {
  return gate(t, { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey), ...changes } }, options)
}

/** A good token but for its claims. */
export function rsaToken(claims: Part | string, header: Part = {}): string {
  return token({ alg: 'RS256', typ: 'JWT', ...header }, claims, PAIRS.rsa.privateKey)
}

/** What the caller hears: the user id, or the code of the refusal with its reason. */
export async function heard(authenticate: Authenticate, bearer: string | undefined, connection?: object): Promise<string> {
  const answer = await authenticate(bearer === undefined ? undefined : `Bearer ${bearer}`, connection)
  return answer.outcome === 'refused' ? `${answer.code}: ${answer.reason}` : answer.principal.id
}
