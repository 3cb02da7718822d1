/** Reads the one credential of a request from the headers of any server. */
import { tokenIn } from '../../jwt/bearer.ts'
import { NotAuthenticated } from './errors.ts'

/** `fetch` headers, or `request.headersDistinct` of node:http: `request.headers` hides a second `Authorization` header. */
export type HeadersLike =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined; readonly get?: string | readonly string[] | undefined }

/** `name` is in lower case. @throws {NotAuthenticated} if the header is missing, repeated or malformed */
export function credentialIn(headers: HeadersLike, name: string): string {
  const [value, ...more] = valuesOf(headers, name)
  if (value === undefined) throw new NotAuthenticated('credential-missing')
  if (more.length > 0) throw new NotAuthenticated('credential-invalid', 'header-repeated')
  const read = tokenIn(value, name === 'authorization' ? 'Bearer ' : '')
  if (typeof read === 'string') throw new NotAuthenticated('credential-invalid', read)
  return read.token
}

function valuesOf(headers: HeadersLike, name: string): readonly string[] {
  // Callers in plain JavaScript may pass anything.
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
