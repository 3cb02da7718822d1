/** Makes the gateway's own answers: JSON, never a redirect, never HTML (docs/reference/errors.md). */
import { CODES, type Code, type LimitState, type Refusal } from '../../core/reasons.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** When a client should try again, in seconds. */
const RETRY_AFTER: Partial<Record<Code, string>> = {
  'not-ready': '1',
  'keys-unavailable': '5',
  'store-unavailable': '5',
  'shutting-down': '1',
}

/** `status` replaces the code's own status, where the upstream's status is kept. */
export function refusalAnswer(refusal: Refusal, status?: number): Answer {
  const { code, allow, limit } = refusal
  const { text } = CODES[code]
  const retry = RETRY_AFTER[code]
  return {
    status: status ?? CODES[code].status,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      ...(allow === undefined ? {} : { allow: allow.join(', ') }),
      ...(retry === undefined ? {} : { 'retry-after': retry }),
      ...(limit === undefined ? {} : limitHeaders(limit)),
      ...challenge(code),
      // The end of a body cannot be trusted after the first, and is far away after the second.
      ...(code === 'header-malformed' || code === 'body-too-large' ? { connection: 'close' } : {}),
    },
    body: JSON.stringify({ error: text, message: text, code }),
  }
}

/** When to try again, and the limit that was reached (draft-ietf-httpapi-ratelimit-headers-10 §3, §4). */
function limitHeaders({ name, most, window, retryAfter }: LimitState): Record<string, string> {
  const seconds = (milliseconds: number): number => Math.max(1, Math.ceil(milliseconds / 1000))
  return {
    'retry-after': String(seconds(retryAfter)),
    'ratelimit-policy': `"${name}";q=${most}${window === 0 ? '' : `;w=${seconds(window)}`}`,
    ratelimit: `"${name}";r=0;t=${seconds(retryAfter)}`,
  }
}

/** RFC 6750 §3: a request without a credential gets the bare challenge, a bad credential gets its error. */
function challenge(code: Code): Record<string, string> {
  switch (code) {
    case 'credential-missing':
      return { 'www-authenticate': 'Bearer' }
    case 'credential-invalid':
      return { 'www-authenticate': 'Bearer error="invalid_token", error_description="the token is not valid"' }
    case 'credential-expired':
      return { 'www-authenticate': 'Bearer error="invalid_token", error_description="the token expired"' }
    default:
      return {}
  }
}
