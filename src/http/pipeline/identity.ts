/** Tells the upstream who the caller is, by headers that no caller can send and a signed assertion (docs/how-to/connect/agents.md). */
import { createHash, createPrivateKey, createPublicKey, randomUUID, type KeyObject } from 'node:crypto'
import { createSigner } from 'fast-jwt'
import type { UpstreamApi } from '../../core/route/all-routes.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import type { Principal } from '../../core/decide/principal.ts'

/** In lower case; a part without a name is not sent. */
export type IdentityHeaderNames = Readonly<Partial<Record<'id' | 'name' | 'role' | 'permissions', string>>>

export interface AssertionRules {
  /** PEM of EC keys on P-256. The first key signs; all keys are published. */
  readonly keys: readonly string[]
  readonly issuer: string
  readonly audience: string
  /** In milliseconds. */
  readonly lifetime: number
  /** In lower case. */
  readonly header: string
  readonly replaceAuthorization: boolean
}

export interface AssertionTarget {
  /** A LangGraph server keeps the headers of each run for the later runs of its thread, which may be another user's. */
  readonly api?: UpstreamApi
  /** `''` for `upstream`. */
  readonly scope: string
  readonly assertionAudience: string | undefined
}

export type IdentityHeaders = (principal: Principal, descriptor: RouteDescriptor) => Readonly<Record<string, string>>

export interface Identity {
  headersTo(target?: AssertionTarget): IdentityHeaders
  /** RFC 7517. */
  readonly keySet: string | null
}

const FIRST: AssertionTarget = { scope: '', assertionAudience: undefined }

/** Assertions are not the issuer's tokens, and must not be mistaken for them (RFC 8725 §3.11). */
const TYPE = 'threadwarden+jwt'

/** The clock gives milliseconds since the epoch. @throws Error for keys that cannot be used */
export function makeIdentity(names: IdentityHeaderNames, rules: AssertionRules | null, clock: () => number): Identity {
  const assert = rules === null ? null : makeAssert(rules, clock)
  // A principal is the same object as long as their credential is remembered.
  const remembered = (isWhole: boolean): ((principal: Principal) => Readonly<Record<string, string>>) => {
    const known = new WeakMap<Principal, Readonly<Record<string, string>>>()
    return (principal) => {
      let headers = known.get(principal)
      if (headers === undefined) known.set(principal, (headers = identityHeaders(names, principal, isWhole)))
      return headers
    }
  }
  const present = remembered(false)
  const whole = remembered(true)
  return {
    headersTo(target = FIRST) {
      const ofPrincipal = target.api === 'langgraph' ? whole : present
      if (assert === null) return ofPrincipal
      return (principal, descriptor) => ({ ...ofPrincipal(principal), ...assert.headers(principal, descriptor, target) })
    },
    keySet: assert?.keySet ?? null,
  }
}

/** @param isWhole whether a part that the user lacks is sent empty */
function identityHeaders(names: IdentityHeaderNames, principal: Principal, isWhole: boolean): Readonly<Record<string, string>> {
  const user = principal.kind === 'user' ? principal : undefined
  const values = {
    id: principal.id,
    name: user?.name,
    role: user?.roles.map(inList).join(','),
    permissions: user?.permissions.map(inList).join(','),
  }
  const headers: Record<string, string> = {}
  for (const [part, name] of Object.entries(names)) {
    const value = values[part as keyof typeof values]
    if (value !== undefined && value !== '') headers[name] = part === 'id' || part === 'name' ? inHeader(value) : value
    else if (isWhole) headers[name] = ''
  }
  return headers
}

/** Printable ASCII as it is, everything else and `%` percent-encoded as UTF-8: a header holds no other (RFC 9110 §5.5). */
function inHeader(text: string): string {
  return text.toWellFormed().replace(/[^\x21-\x24\x26-\x7e]/gu, (one) => encodeURIComponent(one))
}

function inList(text: string): string {
  return inHeader(text).replaceAll(',', '%2C')
}

function makeAssert(rules: AssertionRules, clock: () => number) {
  const keys = rules.keys.map(readKey)
  const [signing] = keys
  if (signing?.privateKey === undefined) throw new Error('an assertion needs a private key first: the one that signs')
  const sign = createSigner({
    key: signing.privateKey,
    algorithm: 'ES256',
    header: { alg: 'ES256', typ: TYPE, kid: signing.jwk.kid },
  })
  const name = rules.replaceAuthorization ? 'authorization' : rules.header
  const headers = (
    principal: Principal,
    { route, ids }: RouteDescriptor,
    { scope, assertionAudience }: AssertionTarget,
  ): Readonly<Record<string, string>> => {
    const now = Math.floor(clock() / 1000)
    const user = principal.kind === 'user' ? principal : undefined
    const token = sign({
      iss: rules.issuer,
      aud: assertionAudience ?? rules.audience,
      scope,
      sub: principal.id,
      ...(user === undefined ? {} : { idp: user.issuer }),
      ...(user?.name === undefined ? {} : { name: user.name }),
      role: user?.roles ?? [],
      permissions: user?.permissions ?? [],
      ...(ids.threadId === undefined ? {} : { thread: ids.threadId }),
      route: route.id,
      jti: randomUUID(),
      iat: now,
      exp: now + Math.ceil(rules.lifetime / 1000),
    })
    return { [name]: rules.replaceAuthorization ? `Bearer ${token}` : token }
  }
  return { headers, keySet: JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }) }
}

export function checkSigningKey(pem: string): void {
  if (readKey(pem).privateKey === undefined) throw new Error('holds no private key, and is the one that signs')
}

export function checkPublishedKey(pem: string): void {
  readKey(pem)
}

/** @param pem a private key on P-256, or a public key that is only published */
function readKey(pem: string) {
  let key: KeyObject
  const secret = pem.includes('PRIVATE KEY')
  try {
    key = secret ? createPrivateKey(pem) : createPublicKey(pem)
  } catch {
    throw new Error('holds no key in PEM form')
  }
  const publicKey = secret ? createPublicKey(key) : key
  if (publicKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw new Error('holds no EC key on P-256: ES256 needs one')
  const { kty, crv, x, y } = publicKey.export({ format: 'jwk' })
  // RFC 7638 §3: the members in this order, with nothing between them.
  const kid = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')
  const privateKey = secret ? (key.export({ type: 'pkcs8', format: 'pem' }) as string) : undefined
  return { privateKey, jwk: { kty, crv, x, y, kid, use: 'sig', alg: 'ES256' } }
}
