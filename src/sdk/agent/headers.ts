/** Takes the one credential from a request's headers, whatever the server in use makes of them. */
import { NotAuthenticated } from './errors.ts'

/**
 * Headers as `fetch` has them, or an object: `request.headersDistinct` of node:http, or `request.headers` where there is
 * nothing better, which shows the first of two `Authorization` headers only.
 */
export type HeadersLike =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined; readonly get?: string | readonly string[] | undefined }

/** Longest value that is looked at, as at the gateway: beyond it nothing is decoded. */
const MAX_LENGTH = 8192

// RFC 6750 §2.1: b64token, after exactly `Bearer `. Neither has a comma, with which servers join repeated headers.
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/
const SCHEME = 'Bearer '

/**
 * The token in a header.
 * @param headers the headers of the request
 * @param name the header's name in lower case; in `authorization` the token follows `Bearer `, elsewhere it stands alone
 * @throws {NotAuthenticated} if it is missing, repeated, or has another form
 */
export function credentialIn(headers: HeadersLike, name: string): string {
  const [value, ...more] = valuesOf(headers, name)
  if (value === undefined) throw new NotAuthenticated('credential-missing')
  if (more.length > 0) throw new NotAuthenticated('credential-invalid', 'header-repeated')
  const isBearer = name === 'authorization'
  if (isBearer && !value.startsWith(SCHEME)) throw new NotAuthenticated('credential-invalid', 'scheme-not-bearer')
  if (value.length > MAX_LENGTH) throw new NotAuthenticated('credential-invalid', 'token-too-long')
  const token = isBearer ? value.slice(SCHEME.length) : value
  if (!TOKEN.test(token)) throw new NotAuthenticated('credential-invalid', 'token-malformed')
  return token
}

/** Every value of the header, in any case of its name. */
function valuesOf(headers: HeadersLike, name: string): readonly string[] {
  // From plain JavaScript, which may ask without them.
  if (typeof (headers as unknown) !== 'object' || (headers as unknown) === null)
    throw new TypeError('headers: must be those of the request')
  if (typeof headers.get === 'function') {
    const value = headers.get(name)
    return value === null ? [] : [value]
  }
  return Object.entries(headers as Readonly<Record<string, unknown>>)
    .filter(([key]) => key.toLowerCase() === name)
    .flatMap(([, value]) => value)
    .filter((value) => typeof value === 'string')
}
