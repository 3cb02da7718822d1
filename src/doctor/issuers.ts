/** The issuers: are their keys there, and do their clocks agree with the one here? */
import { makeIssuers, type Issuer } from '../auth/issuer.ts'
import { ask, codeOf } from './asking.ts'
import { judgeClock } from './clock.ts'
import { notChecked, ok, problem, type Finding } from './finding.ts'
import type { Check, Subject } from './subject.ts'

/** Fetching metadata and then keys takes its time-out twice. */
const PATIENCE_MS = 11_000

/** The checks of the issuers. */
export const ISSUER_CHECKS: readonly Check[] = [
  { name: 'issuers.keys', atLeast: PATIENCE_MS, run: keys },
  { name: 'issuers.clock', run: clocks },
]

async function keys({ config, clock }: Subject): Promise<readonly Finding[]> {
  const failures = new Map<string, string>()
  const issuers = makeIssuers(config.authentication, {
    clock,
    onFetchFailure: (issuer, message) => void failures.set(issuer, message),
  })
  if (issuers.length === 0) return [notChecked('issuers.keys', 'the configuration names no issuer: nobody is asked who they are')]
  return Promise.all(issuers.map((issuer) => keysOf(issuer, failures)))
}

async function keysOf({ key, keys, config }: Issuer, failures: ReadonlyMap<string, string>): Promise<Finding> {
  const found = await keys.find(undefined)
  if (found === 'unavailable') {
    const why = failures.get(key) ?? 'no reason was given'
    return problem('issuers.keys', `the keys of ${key} cannot be fetched: ${why}`, remedyFor(why))
  }
  const many = `${found.length} ${found.length === 1 ? 'key' : 'keys'}`
  return ok('issuers.keys', `${key}: ${many} ${isFetched(config) ? 'fetched' : 'read from its file'}`)
}

function remedyFor(why: string): string {
  if (why.includes('speaks for another issuer'))
    return 'write the issuer to the letter as its metadata has it, a trailing slash included'
  if (why.includes('fits the configured algorithms')) return 'name the algorithms that its keys are for'
  if (/answered \d|names no jwks_uri|is no key set|is no JSON/.test(why)) {
    return 'correct the issuer, or name the address of its keys in jwksUri'
  }
  return 'can this machine reach it? Look at DNS, network policy and proxies; a private authority goes into NODE_EXTRA_CA_CERTS'
}

function isFetched(config: Issuer['config']): boolean {
  return config.publicKeyFile === undefined && config.secretFile === undefined
}

async function clocks({ config, clock }: Subject, signal: AbortSignal): Promise<readonly Finding[]> {
  const { issuers, clockTolerance } = config.authentication
  // Only what is configured is fetched, and an issuer with a key file is asked for nothing.
  const fetched = Object.entries(issuers).filter(([, issuer]) => isFetched(issuer))
  if (fetched.length === 0) return [notChecked('issuers.clock', 'no issuer is asked for its keys, so none tells its time')]
  return Promise.all(
    fetched.map(async ([key, { jwksUri, issuer }]) => {
      const url = jwksUri ?? `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
      try {
        const { headers } = await ask(url, {}, signal)
        return judgeClock('issuers.clock', `the issuer ${key}`, headers, clock(), clockTolerance)
      } catch (error) {
        return notChecked('issuers.clock', `the issuer ${key} gives no answer (${codeOf(error)})`)
      }
    }),
  )
}
