/** Reads the one bearer token of a request (docs/specification.md). */
import { refuse, type Refusal } from '../core/reasons.ts'
import { tokenIn } from '../jwt/bearer.ts'

export function bearerToken(authorization: string | undefined): { readonly token: string } | Refusal {
  if (authorization === undefined) return refuse('credential-missing')
  const read = tokenIn(authorization, 'Bearer ')
  return typeof read === 'string' ? refuse(read) : read
}
