/** Who is asking the self-hosted agent: verified once per request, from the forwarded token or the gateway's assertion. */
import {
  expectThread,
  makeAssertionVerifier,
  makeVerifier,
  type AgentUser,
  type AssertionVerifierOptions,
  type HeadersLike,
} from '../src/sdk/agent/index.ts'

export interface Trust {
  /** Whose tokens count. */
  readonly issuer: string
  /** For whom they have to be issued. */
  readonly audience: string
  /** Where the issuer's keys are; by default its discovery document says so. */
  readonly jwksUri?: string
  /** How the gateway's assertion is verified; with this it counts alone, and the forwarded token says nothing. */
  readonly assertion?: AssertionVerifierOptions
}

/** The check that stands before every run. */
export interface UserReader {
  /**
   * Finds out who is asking.
   * @throws {NotAuthenticated} for a caller who shows nothing good, and {KeysUnavailable} if the keys can't be had
   */
  read(headers: HeadersLike): Promise<AgentUser>
  /**
   * Looks whether the user may be here: an assertion is for one thread.
   * @throws {NotAuthenticated} if it is for another
   */
  admit(user: AgentUser, threadId: string): void
}

/** Makes it. */
export function userReader({ issuer, audience, jwksUri, assertion }: Trust): UserReader {
  if (assertion !== undefined) return { read: makeAssertionVerifier(assertion), admit: expectThread }
  const keys = jwksUri === undefined ? { discovery: true } : { jwksUri }
  // Whose thread it is, a token doesn't say: that is for the gateway to know.
  return { read: makeVerifier({ issuer, audience, algorithms: ['RS256'], ...keys }), admit: () => {} }
}
