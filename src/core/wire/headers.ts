/** Header rules (docs/contributing/specification-map.md, "Authentication" 8; docs/reference/headers.md): configured headers win. */
import { refuse, type Refusal } from '../reasons.ts'
import type { Passes } from '../decide/rules.ts'
import { cookieValues } from './cookies.ts'

/** Usual heads have some twenty lines. A line of a few bytes takes a hundred bytes while its request lives. */
export const MAX_HEADER_LINES = 200

/** By lower-case name, with the value of every line in order. */
export type HeaderLines = ReadonlyMap<string, readonly string[]>

/** `content-type` and `authorization` have separate rules. */
export const BUILT_IN = ['accept', 'accept-language', 'user-agent', 'traceparent', 'tracestate']

// Fields that are not lists (RFC 9110 §5.3): different readers would read two lines of such a field differently.
// oxfmt-ignore
const SINGULAR = [
  'content-type', 'content-length', 'content-encoding', 'transfer-encoding', 'host', 'origin', 'user-agent',
  'traceparent', 'access-control-request-method',
]

/** Hop-by-hop fields (RFC 9110 §7.6.1 and what RFC 2616 §13.5.1 named). */
// oxfmt-ignore
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer',
  'transfer-encoding', 'upgrade', 'http2-settings',
])

const NEVER_FORWARDED: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'content-encoding',
  'cookie',
  'forwarded',
  'x-real-ip',
  'expect',
  'range',
  'accept-encoding',
])

export function settingFault(name: string): string | null {
  const lower = name.toLowerCase()
  const own =
    HOP_BY_HOP.has(lower) ||
    ['host', 'content-length', 'content-type', 'content-encoding', 'accept-encoding', 'expect'].includes(lower)
  return own ? 'is set by the gateway itself' : null
}

export function forwardingFault(name: string, serverHeaders: readonly string[]): string | null {
  const lower = name.toLowerCase()
  if (!/^[!#$%&'*+\-.^`|~0-9a-z]+$/.test(lower)) return 'is not a header name, or has a "_"'
  if (HOP_BY_HOP.has(lower)) return 'ends at every hop'
  if (NEVER_FORWARDED.has(lower)) return 'is never taken from a caller'
  if (lower.startsWith('if-')) return 'asks for an answer out of a cache'
  if (/^x-(?:http-method|auth-scheme$|(?:forwarded|original|rewrite|cpki|threadwarden)(?:-|$))/.test(lower)) return 'is reserved'
  if (serverHeaders.some((server) => server.toLowerCase() === lower)) return 'is set by upstream.headers'
  return null
}

export function passesAnyway(name: string): boolean {
  return [...BUILT_IN, 'authorization', 'content-type'].includes(name.toLowerCase())
}

/** @param raw names and values in turn, as in node:http's `rawHeaders` */
export function headerLines(raw: readonly string[]): HeaderLines {
  const lines = new Map<string, string[]>()
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase()
    const value = raw[at + 1] as string
    const known = lines.get(name)
    if (known === undefined) lines.set(name, [value])
    else known.push(value)
  }
  return lines
}

/** @param httpVersion `1.1` must name its host (RFC 9112 §3.2); a request line without a version is `0.9` */
export function headerFault(lines: HeaderLines, httpVersion = '1.1'): Refusal | null {
  // A second line makes a list, as a comma does.
  if (lines.get('authorization')?.join(',').includes(',')) return refuse('authorization-repeated')
  for (const name of SINGULAR) if ((lines.get(name)?.length ?? 0) > 1) return refuse('header-repeated')
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refuse('http-version-unsupported')
  if (httpVersion === '1.1' && !lines.has('host')) return refuse('host-missing')
  const expectation = lines.get('expect')?.join(',')
  if (expectation !== undefined && expectation.toLowerCase() !== '100-continue') return refuse('expectation-unsupported')
  // RFC 9112 §6.1 lets a server refuse unknown codings; "gzip, chunked" has two readings.
  const coding = lines.get('transfer-encoding')?.[0]
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return refuse('transfer-coding-unsupported')
  return null
}

export interface UpstreamHeaderRules {
  /** In lower case, as are the names in `forward`. */
  readonly server: Readonly<Record<string, string>>
  readonly forward: readonly string[]
  /** Whether a name of `forward` that the caller does not send is sent empty: else the upstream may use an earlier value. */
  readonly blanks?: boolean
  readonly forwardAuthorization: boolean
  /** Names of credential cookies, which were verified. Others could name another user to the upstream. */
  readonly forwardCookies: readonly string[]
}

/**
 * The operator's headers win over `own` (content type, request id), and those win over the caller's.
 * @param passing which of `rules.forward` the policy rule lets pass; null for all
 */
export function upstreamHeaders(
  lines: HeaderLines,
  rules: UpstreamHeaderRules,
  own: Readonly<Record<string, string>>,
  passing: Passes['headers'] = null,
): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const names of [BUILT_IN, rules.forward]) {
    for (const name of names) {
      // These two have separate rules, whatever else names them.
      if (name === 'authorization' || name === 'content-type') continue
      const passes = names !== rules.forward || passing === null || passing.has(name)
      const values = passes ? lines.get(name) : undefined
      if (values !== undefined) headers[name] = values.length === 1 ? (values[0] as string) : values.join(', ')
      else if (rules.blanks === true && name.startsWith('x-')) headers[name] = ''
    }
  }
  const authorization = lines.get('authorization')?.[0]
  if (rules.forwardAuthorization && authorization !== undefined) headers['authorization'] = authorization
  const cookies = rules.forwardCookies.flatMap((name) =>
    cookieValues(lines.get('cookie'), name).map((value) => `${name}=${value}`),
  )
  if (cookies.length > 0) headers['cookie'] = cookies.join('; ')
  // The gateway can read and rewrite only uncompressed answers.
  headers['accept-encoding'] = 'identity'
  return Object.assign(headers, own, rules.server)
}

export type AnswerKind = 'stream' | 'plain' | 'redirect' | 'html'

export type UpstreamAnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** A 304 counts as a redirect: the gateway sent no condition. */
export function answerKind(status: number, headers: UpstreamAnswerHeaders): AnswerKind {
  if (status >= 300 && status < 400) return 'redirect'
  const type = String(headers['content-type']).trim().toLowerCase()
  if (/^(?:text\/html|application\/xhtml\+xml)\b/.test(type)) return 'html'
  return /^(?:text\/event-stream|application\/vnd\.ag-ui\.event\+proto)\b/.test(type) ? 'stream' : 'plain'
}

export type StreamForm = 'events' | 'frames' | 'opaque'

/** Under a content coding the gateway can insert nothing. */
export function streamForm(headers: UpstreamAnswerHeaders): StreamForm {
  if (String(headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') return 'opaque'
  return String(headers['content-type']).trim().toLowerCase().startsWith('text/') ? 'events' : 'frames'
}

const DROPPED_FROM_ANSWERS = new Set(['location', 'refresh', 'x-request-id', 'x-sendfile', 'x-lighttpd-send-file'])
// oxfmt-ignore
const CACHE_FIELDS = new Set([
  'etag', 'age', 'expires', 'last-modified', 'pragma', 'warning', 'surrogate-control', 'surrogate-key', 'edge-control',
])

export function forwardedAnswerHeaders(headers: UpstreamAnswerHeaders, kind: AnswerKind): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {}
  const { connection } = headers
  // The fields that end at this hop because the upstream says so (RFC 9110 §7.6.1).
  const named =
    connection === undefined || connection === 'keep-alive'
      ? []
      : String(connection)
          .split(',')
          .map((name) => name.trim().toLowerCase())
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || HOP_BY_HOP.has(name) || named.includes(name) || DROPPED_FROM_ANSWERS.has(name)) continue
    if (name.startsWith('access-control-')) continue
    // A cache or proxy in front would obey these instead of the gateway's (RFC 9213 §2.2; nginx `X-Accel-*`).
    if (CACHE_FIELDS.has(name) || name.endsWith('cdn-cache-control') || name.startsWith('x-accel-')) continue
    // Keep-alive comments make a stream longer than the upstream announced.
    if (kind === 'stream' && name === 'content-length') continue
    kept[name] = typeof value === 'string' ? value : [...value]
  }
  kept['cache-control'] = kind === 'stream' ? 'no-cache, no-transform' : 'private, no-store'
  if (kind === 'stream') kept['x-accel-buffering'] = 'no'
  return kept
}

/** `multipart/form-data` with a boundary of RFC 2046 §5.1.1 but without `/`, so that it cannot carry another media type. */
export function multipartType(contentType: string): string | null {
  const match =
    /^multipart\/form-data *; *boundary=(?:"([0-9A-Za-z'()+_,\-.:=? ]{0,69}[0-9A-Za-z'()+_,\-.:=?])"|([0-9A-Za-z'+_\-.]{1,70}))$/i.exec(
      contentType.trim(),
    )
  if (match === null) return null
  return `multipart/form-data; boundary=${match[2] ?? `"${match[1]}"`}`
}

export function isJsonType(contentType: string): boolean {
  return /^application\/json *(?:; *charset=(?:"utf-8"|utf-8) *)?$/i.test(contentType.trim())
}
