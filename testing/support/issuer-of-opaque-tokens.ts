/** An issuer that is asked about opaque tokens, and a gate before it. */
import type { Test } from 'tap'
import { gate, heard, ISSUER, type GateOptions } from './gates.ts'
import { startKeyServer, type Asked, type KeyServer } from './key-server.ts'
import { claims, type Part } from './signing.ts'

export const SECRET = 'hush hush'

/** The issuer, and what its gate says of tokens. */
export interface Opaque {
  readonly server: KeyServer
  /** The questions that came. */
  readonly questions: () => readonly Asked[]
  /** What the issuer answers from now on; good claims of an active token, with changes. */
  readonly says: (changes?: Part) => void
  /** The configuration. */
  readonly config: Part
  readonly told: (token: string) => Promise<string>
  readonly failures: string[]
}

/** What the issuer says of an active token. */
export const active = (changes: Part = {}): Part => claims({ active: true, iss: undefined, ...changes })

/**
 * Starts it.
 * @param changes to the issuer's configuration
 * @param introspection changes to that part of it
 * @param others more issuers
 */
export async function startOpaque(
  t: Test,
  changes: Part = {},
  introspection: Part = {},
  { others = {}, ...options }: GateOptions & { readonly others?: Readonly<Record<string, Part>> } = {},
): Promise<Opaque> {
  const server = await startKeyServer(t)
  const failures: string[] = []
  const config = {
    issuer: ISSUER,
    introspection: { url: `${server.url}/introspect`, clientId: 'gateway', clientSecret: SECRET, ...introspection },
    ...changes,
  }
  const authenticate = gate(t, { corp: config, ...others }, { failures, tokenCache: 100, clock: Date.now, ...options })
  const says = (more: Part = {}): void => void server.answers.set('/introspect', { body: active(more) })
  says()
  return {
    server,
    questions: () => server.asked.filter(({ path }) => path === '/introspect'),
    says,
    config,
    told: (token) => heard(authenticate, token),
    failures,
  }
}
