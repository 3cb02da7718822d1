/** Checks the issuers: are their keys available, and do their clocks agree with the local clock, and is the caller's token accepted? */
import { randomUUID } from 'node:crypto'
import { makeAuthenticate } from '../../auth/authenticate.ts'
import { makeIssuers, type Issuer } from '../../auth/issuer.ts'
import { tokenDifferences } from '../../auth/refused-token.ts'
import { isRefusal } from '../../core/reasons.ts'
import { codeOf, judgeClock } from './requests.ts'
import { notChecked, ok, problem, unknown, type Result } from './finding.ts'
import type { Check, Results, Subject } from './subject.ts'

/** The gateway fetches metadata and then keys, so its timeout counts twice. */
const LONGEST_FETCH_MS = 11_000

export const ISSUER_CHECKS: readonly Check[] = [
  { name: 'issuers.keys', atLeast: LONGEST_FETCH_MS, run: keys },
  { name: 'issuers.clock', run: clocks },
  { name: 'issuers.token', atLeast: LONGEST_FETCH_MS, run: token },
]

async function keys({ config, sources, clock }: Subject): Promise<Results> {
  const failures = new Map<string, string>()
  const issuers = makeIssuers(config.authentication, {
    sources,
    clock,
    onFetchFailure: (issuer, message) => void failures.set(issuer, message),
  })
  if (issuers.length === 0) return notChecked('the configuration has no issuer: callers are not authenticated')
  return Promise.all(issuers.map((issuer) => keysOf(issuer, failures)))
}

async function keysOf(issuer: Issuer, failures: ReadonlyMap<string, string>): Promise<Result> {
  const { key, config } = issuer
  const asked = config.algorithms === undefined ? await askedOf(issuer) : await issuer.keys.find(undefined)
  if (asked === 'unavailable') {
    const why = failures.get(key) ?? 'no reason was given'
    const what = config.algorithms === undefined ? `the introspection of ${key} fails` : `the keys of ${key} cannot be fetched`
    return problem(`${what}: ${why}`, remedyFor(why))
  }
  if (asked === 'answers') return ok(`the introspection of ${key} answers`)
  const many = `${asked.length} ${asked.length === 1 ? 'key' : 'keys'}`
  return ok(`${key}: ${many} ${isFetched(config) ? 'fetched' : 'read from its file'}`)
}

/** An issuer with introspection is asked about a token that does not exist. */
async function askedOf({ introspection }: Issuer): Promise<'answers' | 'unavailable'> {
  const said = await introspection?.ask(randomUUID())
  return said !== undefined && 'outcome' in said && said.reason === 'keys-unavailable' ? 'unavailable' : 'answers'
}

function remedyFor(why: string): string {
  if (why.includes('speaks for another issuer')) return 'write the issuer exactly as in its metadata, including a trailing slash'
  if (why.includes('fits the configured algorithms')) return 'write the algorithms of its keys to algorithms'
  if (/answered \d|names no jwks_uri|is no key set|is no JSON/.test(why)) {
    return 'correct the issuer, or write the address of its keys to jwksUri'
  }
  return 'check DNS, network policy and proxies from this machine; write a private certificate authority to the key ca of the issuer'
}

function isFetched(config: Issuer['config']): boolean {
  return config.algorithms !== undefined && config.publicKeyFile === undefined && config.secretFile === undefined
}

async function clocks({ config, sources, clock }: Subject): Promise<Results> {
  // The doctor fetches only from configured addresses, and fetches nothing for an issuer with a key file.
  const fetched = makeIssuers(config.authentication, { sources, clock, onFetchFailure: () => {} }).filter(({ config }) =>
    isFetched(config),
  )
  if (fetched.length === 0) return notChecked('the gateway fetches keys from no issuer')
  return Promise.all(
    fetched.map(async ({ key, config: { jwksUri, issuer }, fetching, clockTolerance }) => {
      const url = jwksUri ?? `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
      try {
        return judgeClock(`the issuer ${key}`, await fetching.headers(url), clock(), clockTolerance)
      } catch (error) {
        return notChecked(`the issuer ${key} gives no answer (${codeOf(error)})`)
      }
    }),
  )
}

/** Verifies the caller's token here, because the gateway answers a caller without the reason. */
async function token({ config: { authentication }, sources, clock, wishes }: Subject): Promise<Results> {
  if (wishes.token === null || authentication.mode === 'off') return []
  const issuers = makeIssuers(authentication, { sources, clock, onFetchFailure: () => {} })
  const authenticate = makeAuthenticate({ mode: authentication.mode, issuers, tokenCache: 0, clock, onClientToken: () => {} })
  const answer = await authenticate(`Bearer ${wishes.token}`)
  if (!isRefusal(answer)) return ok(`the token is accepted, as a token of ${answer.principal.id}`)
  const { reason } = answer
  if (reason === 'keys-unavailable') return unknown(`the token cannot be verified (${reason})`, 'see issuers.keys')
  const differences = tokenDifferences(wishes.token, reason, authentication, clock())
  return problem(
    [`the token is refused (${reason})`, ...differences].join('; '),
    'docs/how-to/connect/identity-providers/troubleshooting.md explains the reasons',
  )
}
