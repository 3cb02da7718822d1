/** A real gateway before an upstream that records, with issuers of the test's own, asked over raw sockets. */
import { readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { DEFAULT_POLICY } from '../../src/config/policy-file.ts'
import { gateBefore } from './gated.ts'
import { issuersOf } from './gates.ts'
import type { TestGateway } from './gateway.ts'
import type { Pair } from './pair.ts'
import type { Part } from './signing.ts'
import { startUpstream, type Answering, type Upstream } from './upstream.ts'

/** What a good token comes to, as `fate` tells it. */
export const PASSED = '200, upstream got GET /api/copilotkit/info'
/** What becomes of every other. */
export const REFUSED = '401 credential-invalid, nothing upstream'

/** The gateway. */
export interface Guarded {
  readonly gateway: TestGateway
  readonly upstream: Upstream
  /** What becomes of a `GET /info` with this token: the answer, and what the upstream got of it. */
  readonly fate: (token: string) => Promise<string>
  /** The same with these header lines in place of a token's. */
  readonly fateOf: (...lines: string[]) => Promise<string>
}

/** What differs from the usual. */
export interface GuardedOptions {
  /** `MULTI_ROUTE` by default. */
  readonly pair?: Pair
  /** Besides the issuers. */
  readonly authentication?: Part
  readonly answering?: Answering
  /** Other parts of the configuration. */
  readonly config?: Part
  /** Besides its URL and transport. */
  readonly upstream?: Part
  /** The target, instead of /info. */
  readonly target?: string
}

/** Starts the gateway; issuers are given as issuersOf takes them, and roles of the first one make operators. */
export async function guarded(t: Test, issuers: Readonly<Record<string, Part>>, options: GuardedOptions = {}): Promise<Guarded> {
  const { pair } = options
  const upstream = await startUpstream(options.answering, { pair })
  t.teardown(() => upstream.close())
  const authentication = { issuers: issuersOf(t, issuers), ...options.authentication }
  const policy = readFileSync(DEFAULT_POLICY.path, 'utf8').replace(
    /^ {2}- (role|permission): (.*)$/gm,
    `  - { issuer: ${Object.keys(issuers)[0] ?? ''}, $1: $2 }`,
  )
  const { gateway } = await gateBefore(t, upstream.url, {
    pair,
    config: { ...options.config, authentication, ...(options.upstream === undefined ? {} : { upstream: options.upstream }) },
    policy,
  })
  const fateOf: Guarded['fateOf'] = async (...lines) => {
    const before = upstream.beginnings()
    const { status, body } = await gateway.ask({ target: options.target ?? '/api/copilotkit/info', lines })
    const code = /"code":"([^"]*)"/.exec(body)?.[1]
    const answer = code === undefined ? String(status) : `${status} ${code}`
    if (upstream.beginnings() === before) return `${answer}, nothing upstream`
    const { method = '', target = '' } = upstream.requests.at(-1) ?? {}
    return `${answer}, upstream got ${method} ${target}`
  }
  return { gateway, upstream, fateOf, fate: (token) => fateOf(`Authorization: Bearer ${token}`) }
}
