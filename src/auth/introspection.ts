/** Asks the issuer whether an opaque token is valid (RFC 7662). A missing or unclear answer is never yes. */
import type { IssuerConfig } from '../config/schema.ts'
import { refuse, type Refusal } from '../core/reasons.ts'
import { timeIn, type Claims } from '../jwt/claims.ts'
import type { Fetching } from './fetching.ts'
import { digestOf } from './token-cache.ts'

export interface Introspection {
  /** The claims of an active token; a refusal is 401, or 503 if the issuer did not answer. */
  ask(token: string): Promise<{ readonly claims: Claims } | Refusal>
  /** Milliseconds for which an answer may be reused. */
  readonly cacheFor: number
}

/** Most pending queries about unknown tokens: callers easily make up opaque tokens, and each costs a query. */
const MAX_QUESTIONS = 64
/** Tokens that were active when last asked about have no such limit: there are no more of them than users. */
const MAX_KNOWN = 10_000

/** Times are in milliseconds. `onFailure` gets every query without an answer. */
export function makeIntrospection(
  config: IssuerConfig,
  fetching: Fetching,
  clock: () => number,
  onFailure: (message: string) => void,
  clockTolerance: number,
): Introspection {
  const { introspection } = config
  if (introspection === undefined) throw new Error('an issuer without introspection')
  const running = new Map<string, Promise<Claims | null>>()
  const known = new Set<string>()
  const forget = (token: string): void => void known.delete(digestOf(token))
  const remember = (token: string): void => {
    forget(token)
    known.add(digestOf(token))
    const [oldest] = known.size > MAX_KNOWN ? known : []
    if (oldest !== undefined) known.delete(oldest)
  }
  const isKnown = (token: string): boolean => known.has(digestOf(token))

  const post = (token: string): Promise<Claims | null> => {
    const { url, clientId, clientSecret, clientAuthentication } = introspection
    const form = new URLSearchParams({ token, token_type_hint: 'access_token' })
    const headers: Record<string, string> = {}
    if (clientAuthentication === 'post') {
      form.set('client_id', clientId)
      form.set('client_secret', clientSecret)
    } else {
      // RFC 6749 §2.3.1: both are form-encoded before they are joined.
      const pair = `${formEncoded(clientId)}:${formEncoded(clientSecret)}`
      headers['authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`
    }
    return fetching.post(url, form, headers).catch((error: unknown) => {
      onFailure(error instanceof Error ? error.message : String(error))
      return null
    })
  }

  return {
    cacheFor: introspection.cacheFor,
    async ask(token) {
      let question = running.get(token)
      if (question === undefined) {
        if (running.size >= MAX_QUESTIONS && !isKnown(token)) return refuse('keys-unavailable')
        question = post(token).finally(() => running.delete(token))
        running.set(token, question)
      }
      const claims = await question
      if (claims === null) return refuse('keys-unavailable')
      // Without `active`, the answer does not say whether the token is valid.
      if (typeof claims['active'] !== 'boolean') {
        onFailure(`${introspection.url} answered without "active"`)
        return refuse('keys-unavailable')
      }
      if (claims['active']) remember(token)
      else forget(token)
      return checkAnswer(config, claims, clock(), clockTolerance)
    },
  }
}

/** RFC 7662 §2.2: the issuer and the times in an answer are optional. */
function checkAnswer(
  config: IssuerConfig,
  claims: Claims,
  now: number,
  tolerance: number,
): { readonly claims: Claims } | Refusal {
  if (claims['active'] !== true) return refuse('token-inactive')
  if (claims['iss'] !== undefined && claims['iss'] !== config.issuer) return refuse('issuer-unknown')
  const ends = timeIn(claims['exp'])
  if (claims['exp'] !== undefined && ends === undefined) return refuse('claim-missing')
  if (ends !== undefined && ends + tolerance <= now) return refuse('token-expired')
  const begins = timeIn(claims['nbf'])
  if (claims['nbf'] !== undefined && (begins === undefined || begins > now + tolerance)) return refuse('token-not-yet-valid')
  return { claims }
}

function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1)
}
