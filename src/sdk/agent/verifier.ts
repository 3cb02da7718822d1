/** Makes the checks that stand before every run: of the user's forwarded token, or of the gateway's assertion. */
import { credentialIn, type HeadersLike } from './headers.ts'
import { ALGORITHMS, keyFromJwk, keyFromPem, type Algorithm } from './key.ts'
import { fixedKeys, isFetchable, remoteKeys, type Fetch, type KeySource } from './key-source.ts'
import { ASSERTION_TYPE, typeName, verifyToken, type TokenRules } from './token.ts'
import { isPointer, userFromClaims, USUAL_POINTERS, withThread, type AgentUser, type ClaimPointers } from './user.ts'

/**
 * Finds out who is asking.
 * @param headers the headers of the request
 * @returns the user
 * @throws {NotAuthenticated} if they show no good credential: 401
 * @throws {KeysUnavailable} if the keys can't be had: 503
 */
export type Verify = (headers: HeadersLike) => Promise<AgentUser>

/** Where keys are. Give exactly one. */
export interface KeyOptions {
  /** The address of the key set: https, or http on this machine. */
  readonly jwksUri?: string
  /** The keys themselves: JWKs, or PEM text. */
  readonly keys?: readonly (object | string)[]
}

/** What both kinds of credential are held to. */
export interface CommonOptions extends KeyOptions {
  /** The `iss`, to the letter. */
  readonly issuer: string
  /** The `aud`, or several of which one has to be named. */
  readonly audience: string | readonly string[]
  /** Allowed difference of clocks for `exp` and `nbf`, in milliseconds: at most five minutes. */
  readonly clockTolerance?: number
  /** Fetches keys in place of the global `fetch`, for example with a private certificate authority. */
  readonly fetch?: Fetch
}

/** What a forwarded token is held to. */
export interface VerifierOptions extends CommonOptions {
  /** Exactly those that the issuer signs with. Public keys only: `none` and `HS*` are refused. */
  readonly algorithms: readonly Algorithm[]
  /** True if the issuer's metadata names the key set: the third way to say where keys are. */
  readonly discovery?: boolean
  /** Where in the claims things are, if they are elsewhere: JSON pointers. */
  readonly claims?: Partial<ClaimPointers>
  /** The `typ` that a token must have, one of these; by default `JWT`, `at+jwt` or none. */
  readonly tokenTypes?: readonly string[]
  /** The issuer's key in the gateway's configuration: with `corp`, alice is `corp:alice`, as at the gateway. */
  readonly issuerKey?: string
}

/** What an assertion is held to. */
export interface AssertionVerifierOptions extends CommonOptions {
  /** The header in which it stands; in `authorization` after `Bearer `. */
  readonly header?: string
  /** The upstream that it must be for: its key in the gateway's configuration, `''` for `upstream`. By default any. */
  readonly scope?: string
}

/** The header of assertions. */
export const ASSERTION_HEADER = 'x-threadwarden-assertion'

const COMMON = ['issuer', 'audience', 'clockTolerance', 'fetch', 'jwksUri', 'keys']

const MAX_TOLERANCE_MS = 300_000
/** A media type below `application/` (RFC 6838 §4.2). */
const TYPE = /^(?:application\/)?[a-z0-9][a-z0-9!#$&^_.+-]*$/i
const SCOPE = /^[a-z0-9-]*$/
const ISSUER_KEY = /^[a-z0-9-]+$/
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^`|~-]+$/i

/**
 * Makes the check of the user's own token, in the `Authorization` header that the frontend sent and everybody passed on.
 * @throws TypeError if the options would not hold
 */
export function makeVerifier(options: VerifierOptions): Verify {
  onlyNames(options, [...COMMON, 'algorithms', 'discovery', 'claims', 'tokenTypes', 'issuerKey'])
  noneUndefined(options, ['claims', 'tokenTypes', 'issuerKey'])
  const { algorithms, claims = {}, issuerKey, discovery = false, tokenTypes } = options
  must(isList(algorithms) && algorithms.length > 0, 'algorithms: name those that the issuer signs with')
  for (const one of algorithms) must(ALGORITHMS.includes(one), `algorithms: ${one} is none with a public key`)
  must(issuerKey === undefined || isText(issuerKey, ISSUER_KEY), 'issuerKey: must be lower-case letters, digits and hyphens')
  must(typeof discovery === 'boolean', 'discovery: must be true or false')
  must(tokenTypes === undefined || isList(tokenTypes), 'tokenTypes: must be a list')
  const types = tokenTypes?.map((one) => (isText(one, TYPE) ? typeName(one) : ''))
  must(types?.length !== 0 && types?.includes('') !== true, 'tokenTypes: must be types such as at+jwt')
  must(types?.includes(ASSERTION_TYPE) !== true, `tokenTypes: ${ASSERTION_TYPE} is that of assertions`)
  const pointers = pointersOf(claims)
  const rules = { ...rulesOf(options, 'token', [...algorithms], 30_000), tokenTypes: types }
  const source = sourceOf(options, rules, discovery)
  const prefix = issuerKey === undefined ? '' : `${issuerKey}:`
  return async (headers) =>
    userFromClaims(await verifyToken(credentialIn(headers, 'authorization'), rules, source), pointers, prefix)
}

/**
 * Makes the check of the gateway's assertion: an ES256 JWT of type `threadwarden+jwt` for one request.
 * @throws TypeError if the options would not hold
 */
export function makeAssertionVerifier(options: AssertionVerifierOptions): Verify {
  onlyNames(options, [...COMMON, 'header', 'scope'])
  noneUndefined(options, ['scope'])
  const { header: given = ASSERTION_HEADER, scope } = options
  must(isText(given, HEADER_NAME), 'header: must be the name of a header')
  const header = given.toLowerCase()
  must(scope === undefined || isText(scope, SCOPE), "scope: must be the upstream's key, or ''")
  const rules = { ...rulesOf(options, 'assertion', ['ES256'], 5000), scope }
  const source = sourceOf(options, rules, false)
  return async (headers) => {
    const claims = await verifyToken(credentialIn(headers, header), rules, source)
    return withThread(userFromClaims(claims, USUAL_POINTERS), claims['thread'])
  }
}

/** An option by another name would be no rule at all, whether it is an own one or inherited: those that count are either. */
function onlyNames(options: unknown, names: readonly string[], place = ''): void {
  must(typeof options === 'object' && options !== null, `${place === '' ? 'options' : place}: must be an object`)
  const prefix = place === '' ? '' : `${place}.`
  for (const name in options) must(names.includes(name), `${prefix}${name}: is no option; options: ${names.join(', ')}`)
}

/** Present and undefined is a slip, such as of an environment variable that is not set: it must not mean what is usual, or any. */
function noneUndefined<Options extends object>(options: Options, names: readonly (keyof Options & string)[]): void {
  for (const name of names) must(!(name in options) || options[name] !== undefined, `${name}: is there, and undefined`)
}

/** Where things are in the claims: what is not said is where it usually is. */
function pointersOf(claims: Partial<ClaimPointers>): ClaimPointers {
  onlyNames(claims, Object.keys(USUAL_POINTERS), 'claims')
  const pointer = (name: keyof ClaimPointers): string => {
    const one = name in claims ? claims[name] : USUAL_POINTERS[name]
    if (!isPointer(one)) throw new TypeError(`claims.${name}: must be a JSON pointer`)
    return one
  }
  return { id: pointer('id'), name: pointer('name'), role: pointer('role'), permissions: pointer('permissions') }
}

function rulesOf(
  { issuer, audience, clockTolerance }: CommonOptions,
  kind: TokenRules['kind'],
  algorithms: readonly Algorithm[],
  usualTolerance: number,
): TokenRules {
  const audiences: readonly unknown[] = Array.isArray(audience) ? [...(audience as readonly unknown[])] : [audience]
  const tolerance = clockTolerance ?? usualTolerance
  must(isName(issuer), 'issuer: must be a string')
  must(audiences.length > 0 && audiences.every(isName), 'audience: must be a string or a list of strings')
  must(typeof tolerance === 'number', 'clockTolerance: must be a number of milliseconds')
  must(tolerance >= 0 && tolerance <= MAX_TOLERANCE_MS, `clockTolerance: must be 0 to ${MAX_TOLERANCE_MS} milliseconds`)
  return { issuer, audiences, algorithms, clockTolerance: tolerance, kind }
}

function sourceOf(options: CommonOptions, rules: TokenRules, discovery: boolean): KeySource {
  const { keys, jwksUri, issuer, fetch = globalThis.fetch } = options
  const ways = [keys !== undefined, jwksUri !== undefined, discovery].filter(Boolean).length
  must(ways === 1, `${rules.kind === 'token' ? 'jwksUri, keys and discovery' : 'jwksUri and keys'}: give exactly one`)
  if (keys !== undefined) {
    must(isList(keys), 'keys: must be a list')
    const read = keys.map((key) => (typeof key === 'string' ? keyFromPem(key, rules) : keyFromJwk(key, rules)))
    const good = read.filter((key) => key !== null)
    must(good.length > 0 && good.length === read.length, 'keys: must be public keys that fit the algorithms')
    return fixedKeys(good)
  }
  must(isFetchable(jwksUri ?? issuer), `${jwksUri === undefined ? 'issuer' : 'jwksUri'}: must be https, or http on this machine`)
  return remoteKeys(jwksUri === undefined ? { issuer } : { jwksUri }, (jwk) => keyFromJwk(jwk, rules), fetch)
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** As Array.isArray, and what is in it keeps its type. */
function isList(value: unknown): boolean {
  return Array.isArray(value)
}

function isText(value: unknown, form: RegExp): value is string {
  return typeof value === 'string' && form.test(value)
}

function must(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new TypeError(otherwise)
}
