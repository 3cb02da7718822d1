/** Every answer that the gateway makes itself, in two closed lists: codes for callers, reasons for logs and metrics. */

/** Code → HTTP status and the text that callers (and the chat's users) read. */
export const CODES = {
  'target-malformed': { status: 400, text: 'The request target is not in canonical form.' },
  'header-malformed': { status: 400, text: 'A request header is malformed or repeated.' },
  'body-malformed': { status: 400, text: 'The request body is not acceptable.' },
  'thread-id-invalid': { status: 400, text: 'The thread id is missing or not acceptable.' },
  'agent-id-invalid': { status: 400, text: 'The agent id is missing or not acceptable.' },
  'user-id-invalid': { status: 400, text: 'The user id in the credential is missing or malformed.' },
  'credential-missing': { status: 401, text: 'Sign in: no credential was sent.' },
  'credential-invalid': { status: 401, text: 'Sign in again: the credential is not valid.' },
  'credential-expired': { status: 401, text: 'Sign in again: the credential has expired.' },
  'not-owner': { status: 403, text: 'This conversation is not yours.' },
  'not-allowed': { status: 403, text: 'You are not allowed to do this.' },
  'not-found': { status: 404, text: 'Not found.' },
  'method-not-allowed': { status: 405, text: 'This method is not allowed here.' },
  'body-too-large': { status: 413, text: 'The request body is too large.' },
  'media-type-unsupported': { status: 415, text: 'The content type or content encoding is not supported here.' },
  'rate-limited': { status: 429, text: 'Too many requests: try again later.' },
  'budget-exceeded': { status: 429, text: 'The token budget is used up: try again later.' },
  'headers-too-large': { status: 431, text: 'The request headers are too large.' },
  'identity-failed': { status: 500, text: 'The identity source gave an unusable answer.' },
  internal: { status: 500, text: 'The gateway failed.' },
  'upstream-unreachable': { status: 502, text: 'The agent runtime cannot be reached.' },
  'upstream-unusable': { status: 502, text: 'The agent runtime gave an unusable answer.' },
  'store-unavailable': { status: 503, text: 'The ownership store is unavailable: try again later.' },
  'keys-unavailable': { status: 503, text: 'The keys of the identity provider are unavailable: try again later.' },
  'not-ready': { status: 503, text: 'The gateway is not ready: try again later.' },
  'shutting-down': { status: 503, text: 'The gateway is shutting down.' },
  'upstream-timeout': { status: 504, text: 'The agent runtime did not answer in time.' },
} as const

export type Code = keyof typeof CODES

/** Many reasons share one code, so that an answer tells a caller no more than docs/reference/errors.md allows. */
export const REASONS = {
  'http-unreadable': 'header-malformed',
  'http-headers-too-large': 'headers-too-large',
  'target-not-origin-form': 'target-malformed',
  'target-character': 'target-malformed',
  'target-encoding': 'target-malformed',
  'target-separator': 'target-malformed',
  'target-dot-segment': 'target-malformed',
  'target-empty-segment': 'target-malformed',
  'query-encoding': 'target-malformed',
  'query-name-repeated': 'target-malformed',
  'query-beside-envelope': 'target-malformed',
  'query-limit-invalid': 'target-malformed',
  'query-cursor-invalid': 'target-malformed',
  'memory-id-invalid': 'target-malformed',
  'path-id-invalid': 'target-malformed',
  'authorization-repeated': 'header-malformed',
  'header-repeated': 'header-malformed',
  'http-version-unsupported': 'header-malformed',
  'host-missing': 'header-malformed',
  'expectation-unsupported': 'header-malformed',
  'transfer-coding-unsupported': 'header-malformed',
  'thread-id-invalid': 'thread-id-invalid',
  'agent-id-invalid': 'agent-id-invalid',
  'credential-missing': 'credential-missing',
  'cookie-cross-site': 'not-allowed',
  'cookie-repeated': 'credential-invalid',
  'credential-place': 'credential-invalid',
  'credentials-differ': 'credential-invalid',
  'scheme-not-bearer': 'credential-invalid',
  'token-malformed': 'credential-invalid',
  'token-too-long': 'credential-invalid',
  'token-critical-extension': 'credential-invalid',
  'token-type': 'credential-invalid',
  'issuer-unknown': 'credential-invalid',
  'algorithm-not-allowed': 'credential-invalid',
  'key-unknown': 'credential-invalid',
  'signature-invalid': 'credential-invalid',
  'audience-mismatch': 'credential-invalid',
  'claim-missing': 'credential-invalid',
  'token-not-yet-valid': 'credential-invalid',
  'token-inactive': 'credential-invalid',
  'token-too-old': 'credential-invalid',
  'token-revoked': 'credential-invalid',
  'token-expired': 'credential-expired',
  'user-id-invalid': 'user-id-invalid',
  'keys-unavailable': 'keys-unavailable',
  'identity-failed': 'identity-failed',
  'upstream-transport-pending': 'not-ready',
  'bodies-budget-exhausted': 'not-ready',
  'route-unknown': 'not-found',
  'upstream-lacks-route': 'not-found',
  'grant-unknown': 'not-found',
  'run-unknown': 'not-found',
  'method-not-allowed': 'method-not-allowed',
  'no-rule-allows': 'not-allowed',
  'anonymous-not-allowed': 'not-allowed',
  'operator-only': 'not-allowed',
  'agent-not-allowed': 'not-allowed',
  'denied-by-rule': 'not-allowed',
  'rule-failed': 'not-allowed',
  'interrupt-answer-not-allowed': 'not-allowed',
  'route-closed': 'not-allowed',
  'run-option-not-allowed': 'not-allowed',
  'command-not-allowed': 'not-allowed',
  'configurable-not-allowed': 'not-allowed',
  'rules-changed': 'not-allowed',
  'message-role-not-allowed': 'not-allowed',
  'message-part-not-allowed': 'not-allowed',
  'history-forged': 'not-allowed',
  'upstream-not-user-scoped': 'not-allowed',
  'origin-not-listed': 'not-allowed',
  'thread-foreign': 'not-owner',
  'checkpoint-foreign': 'not-owner',
  'thread-unknown': 'not-owner',
  'thread-has-history': 'not-owner',
  'thread-unconfirmed': 'not-owner',
  'body-unexpected': 'body-malformed',
  'body-not-utf8': 'body-malformed',
  'body-not-json': 'body-malformed',
  'body-not-object': 'body-malformed',
  'body-too-deep': 'body-malformed',
  'body-key-repeated': 'body-malformed',
  'body-key-forbidden': 'body-malformed',
  'body-number-out-of-range': 'body-malformed',
  'run-id-invalid': 'body-malformed',
  'body-no-recording': 'body-malformed',
  'body-aborted': 'body-malformed',
  'grant-malformed': 'body-malformed',
  'grants-too-many': 'body-malformed',
  'body-too-large': 'body-too-large',
  'body-too-many-values': 'body-too-large',
  'body-too-many-members': 'body-too-large',
  'body-keys-too-long': 'body-too-large',
  'messages-too-many': 'body-too-large',
  'message-too-large': 'body-too-large',
  'interrupt-answers-too-many': 'body-too-large',
  'requests-limited': 'rate-limited',
  'runs-limited': 'rate-limited',
  'new-threads-limited': 'rate-limited',
  'grants-limited': 'rate-limited',
  'streams-limited': 'rate-limited',
  'token-budget-exceeded': 'budget-exceeded',
  'media-type-unsupported': 'media-type-unsupported',
  'content-encoding-unsupported': 'media-type-unsupported',
  'upstream-unreachable': 'upstream-unreachable',
  'caller-left': 'upstream-unreachable',
  'upstream-broke-off': 'upstream-unreachable',
  'upstream-redirect': 'upstream-unusable',
  'upstream-html': 'upstream-unusable',
  'upstream-list-unreadable': 'upstream-unusable',
  'threads-too-many': 'upstream-unusable',
  'upstream-answer-unreadable': 'upstream-unusable',
  'history-not-served': 'upstream-unusable',
  'upstream-timeout': 'upstream-timeout',
  'store-unavailable': 'store-unavailable',
  'shutting-down': 'shutting-down',
  internal: 'internal',
} as const satisfies Record<string, Code>

export type Reason = keyof typeof REASONS

export interface RulePlace {
  /** The configured name, or `rule 3` by its place in the file. */
  readonly name: string
  readonly file: string
  /** 1-based. */
  readonly line?: number
}

export interface LimitState {
  readonly name: string
  readonly most: number
  /** Milliseconds; 0 for a limit on concurrent use. */
  readonly window: number
  /** Milliseconds. */
  readonly retryAfter: number
}

export interface Refusal {
  readonly outcome: 'refused'
  readonly reason: Reason
  /** Differs from the reason's own code only where the policy hides a thread. */
  readonly code: Code
  readonly allow?: readonly string[]
  readonly rule?: RulePlace
  readonly limit?: LimitState
}

export function refuse(reason: Reason, more: Partial<Omit<Refusal, 'outcome' | 'reason'>> = {}): Refusal {
  return { outcome: 'refused', reason, code: REASONS[reason], ...more }
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'outcome' in value && value.outcome === 'refused'
}
