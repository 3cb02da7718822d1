/** Makes the verifiers of the user's forwarded token and of the gateway's assertion. */
import { isFetchable } from '../../core/wire/addresses.ts'
import { PUBLIC_KEY_ALGORITHMS, type PublicKeyAlgorithm } from '../../jwt/algorithms.ts'
import { tokenTypeName } from '../../jwt/claims.ts'
import { credentialIn, type HeadersLike, ASSERTION_TYPE, verifyToken, type TokenRules } from './token.ts'
import { fetchedKeys, givenKeys, type AgentKeys, type Fetch } from './keys.ts'
import { isClaimPointer, userFromClaims, USUAL_POINTERS, withThread, type AgentUser, type ClaimPointers } from './user.ts'

/** @throws {NotAuthenticated} without a valid credential: answer 401; {KeysUnavailable} if keys cannot be fetched: answer 503 */
export type Verify = (headers: HeadersLike) => Promise<AgentUser>

/** Give exactly one. */
export interface KeyOptions {
  /** The address of the key set: https, or http on this machine. */
  readonly jwksUri?: string
  readonly keys?: readonly (object | string)[]
}

export interface CommonOptions extends KeyOptions {
  readonly issuer: string
  /** The credential's `aud` must name one of them. */
  readonly audience: string | readonly string[]
  /** Allowed clock difference for `exp` and `nbf`, in milliseconds: at most five minutes. */
  readonly clockTolerance?: number
  /** Replaces the global `fetch` for keys, for example to use a private CA. */
  readonly fetch?: Fetch
}

export interface VerifierOptions extends CommonOptions {
  /** Exactly those that the issuer signs with. Public keys only: `none` and `HS*` are refused. */
  readonly algorithms: readonly PublicKeyAlgorithm[]
  /** True if the issuer's metadata names the key set: the third source of keys. */
  readonly discovery?: boolean
  readonly claims?: Partial<ClaimPointers>
  /** The accepted values of `typ`; by default `JWT`, `at+jwt` or none. */
  readonly tokenTypes?: readonly string[]
  /** The issuer's key in the gateway's configuration: with `corp`, alice is `corp:alice`, as at the gateway. */
  readonly issuerKey?: string
}

export interface AssertionVerifierOptions extends CommonOptions {
  /** The assertion's header; in `authorization` the token follows `Bearer `. */
  readonly header?: string
  /** The upstream's key in the gateway's configuration, `''` for `upstream`. By default any. */
  readonly scope?: string
}

export const ASSERTION_HEADER = 'x-threadwarden-assertion'

const COMMON = ['issuer', 'audience', 'clockTolerance', 'fetch', 'jwksUri', 'keys']

const MAX_TOLERANCE_MS = 300_000
/** A media type below `application/` (RFC 6838 §4.2). */
const TYPE = /^(?:application\/)?[a-z0-9][a-z0-9!#$&^_.+-]*$/i
const SCOPE = /^[a-z0-9-]*$/
const ISSUER_KEY = /^[a-z0-9-]+$/
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^`|~-]+$/i

/** Verifies the user's own token from the `Authorization` header. @throws TypeError for invalid options */
export function makeVerifier(options: VerifierOptions): Verify {
  onlyNames(options, [...COMMON, 'algorithms', 'discovery', 'claims', 'tokenTypes', 'issuerKey'])
  noneUndefined(options, ['claims', 'tokenTypes', 'issuerKey'])
  const { algorithms, claims = {}, issuerKey, discovery = false, tokenTypes } = options
  must(isList(algorithms) && algorithms.length > 0, 'algorithms: name those that the issuer signs with')
  for (const one of algorithms) must(PUBLIC_KEY_ALGORITHMS.includes(one), `algorithms: ${one} is none with a public key`)
  must(issuerKey === undefined || isText(issuerKey, ISSUER_KEY), 'issuerKey: must be lower-case letters, digits and hyphens')
  must(typeof discovery === 'boolean', 'discovery: must be true or false')
  must(tokenTypes === undefined || isList(tokenTypes), 'tokenTypes: must be a list')
  const types = tokenTypes?.map((one) => (isText(one, TYPE) ? tokenTypeName(one) : ''))
  must(types?.length !== 0 && types?.includes('') !== true, 'tokenTypes: must be types such as at+jwt')
  must(types?.includes(ASSERTION_TYPE) !== true, `tokenTypes: ${ASSERTION_TYPE} is that of assertions`)
  const pointers = pointersOf(claims)
  const rules = { ...rulesOf(options, 'token', [...algorithms], 30_000), tokenTypes: types }
  const keys = keysOf(options, rules)
  const prefix = issuerKey === undefined ? '' : `${issuerKey}:`
  return async (headers) =>
    userFromClaims(await verifyToken(credentialIn(headers, 'authorization'), rules, keys), pointers, prefix)
}

/** Verifies the gateway's assertion: an ES256 JWT (`threadwarden+jwt`) for one request. @throws TypeError for invalid options */
export function makeAssertionVerifier(options: AssertionVerifierOptions): Verify {
  onlyNames(options, [...COMMON, 'header', 'scope'])
  noneUndefined(options, ['scope'])
  const { header: given = ASSERTION_HEADER, scope } = options
  must(isText(given, HEADER_NAME), 'header: must be the name of a header')
  const header = given.toLowerCase()
  must(scope === undefined || isText(scope, SCOPE), "scope: must be the upstream's key, or ''")
  const rules = { ...rulesOf(options, 'assertion', ['ES256'], 5000), scope }
  const keys = keysOf(options, rules)
  return async (headers) => {
    const claims = await verifyToken(credentialIn(headers, header), rules, keys)
    return withThread(userFromClaims(claims, USUAL_POINTERS), claims['thread'])
  }
}

/** A misspelled option would enforce nothing. Inherited options count, too. */
function onlyNames(options: unknown, names: readonly string[], place = ''): void {
  must(typeof options === 'object' && options !== null, `${place === '' ? 'options' : place}: must be an object`)
  const prefix = place === '' ? '' : `${place}.`
  for (const name in options) must(names.includes(name), `${prefix}${name}: is no option; options: ${names.join(', ')}`)
}

/** An unset environment variable is a mistake: it must mean neither the default nor `any`. */
function noneUndefined<Options extends object>(options: Options, names: readonly (keyof Options & string)[]): void {
  for (const name of names) must(!(name in options) || options[name] !== undefined, `${name}: is there, and undefined`)
}

function pointersOf(claims: Partial<ClaimPointers>): ClaimPointers {
  onlyNames(claims, Object.keys(USUAL_POINTERS), 'claims')
  const pointer = (name: keyof ClaimPointers): string => {
    const one = name in claims ? claims[name] : USUAL_POINTERS[name]
    if (!isClaimPointer(one)) throw new TypeError(`claims.${name}: must be a JSON pointer`)
    return one
  }
  return { id: pointer('id'), name: pointer('name'), role: pointer('role'), permissions: pointer('permissions') }
}

function rulesOf(
  { issuer, audience, clockTolerance }: CommonOptions,
  kind: TokenRules['kind'],
  algorithms: readonly PublicKeyAlgorithm[],
  defaultTolerance: number,
): TokenRules {
  const audiences: readonly unknown[] = Array.isArray(audience) ? [...(audience as readonly unknown[])] : [audience]
  const tolerance = clockTolerance ?? defaultTolerance
  must(isName(issuer), 'issuer: must be a string')
  must(audiences.length > 0 && audiences.every(isName), 'audience: must be a string or a list of strings')
  must(typeof tolerance === 'number', 'clockTolerance: must be a number of milliseconds')
  must(tolerance >= 0 && tolerance <= MAX_TOLERANCE_MS, `clockTolerance: must be 0 to ${MAX_TOLERANCE_MS} milliseconds`)
  return { issuer, audiences, algorithms, clockTolerance: tolerance, kind }
}

function keysOf(options: CommonOptions & Pick<VerifierOptions, 'discovery'>, rules: TokenRules): AgentKeys {
  const { keys, jwksUri, issuer, discovery = false, fetch = globalThis.fetch } = options
  const sources = [keys !== undefined, jwksUri !== undefined, discovery].filter(Boolean).length
  must(sources === 1, `${rules.kind === 'token' ? 'jwksUri, keys and discovery' : 'jwksUri and keys'}: give exactly one`)
  if (keys !== undefined) {
    must(isList(keys), 'keys: must be a list')
    const given = givenKeys(keys, rules)
    must(given !== null, 'keys: must be public keys that fit the algorithms')
    return given
  }
  const uri: unknown = jwksUri ?? issuer
  const name = jwksUri === undefined ? 'issuer' : 'jwksUri'
  must(isName(uri) && isFetchable(uri), `${name}: must be https, or http on this machine`)
  return fetchedKeys(jwksUri === undefined ? { issuer } : { jwksUri }, rules, fetch)
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Array.isArray would change the type of the members. */
function isList(value: unknown): boolean {
  return Array.isArray(value)
}

function isText(value: unknown, form: RegExp): value is string {
  return typeof value === 'string' && form.test(value)
}

function must(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new TypeError(otherwise)
}
