/** Cross-origin answers (Fetch, "CORS protocol"; runtime-behaviour.md, "HTTP and CORS"). Preflights come without a token. */
import type { HeaderLines } from './headers.ts'

export interface CorsRules {
  /** Exact origins, or `['*']`. */
  readonly origins: readonly string[]
  readonly credentials: boolean
}

// The last three are of a LangGraph server: its client finds a run and the next page by them.
const EXPOSED = 'x-request-id, retry-after, www-authenticate, content-location, x-pagination-next, x-pagination-total'
const METHODS = 'GET, POST, PATCH, DELETE'
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/

export function isPreflight(method: string, lines: HeaderLines): boolean {
  return method === 'OPTIONS' && lines.has('origin') && lines.has('access-control-request-method')
}

export function corsHeaders(lines: HeaderLines, rules: CorsRules): Record<string, string> {
  if (rules.origins.length === 0) return {}
  const any = rules.origins.includes('*')
  // Caches must keep answers to different origins apart, even refused ones.
  const vary: Record<string, string> = any ? {} : { vary: 'Origin' }
  const origin = lines.get('origin')?.[0]
  if (origin === undefined || !(any || rules.origins.includes(origin))) return vary
  return {
    ...vary,
    'access-control-allow-origin': any ? '*' : origin,
    ...(rules.credentials ? { 'access-control-allow-credentials': 'true' } : {}),
    'access-control-expose-headers': EXPOSED,
  }
}

/** Null if the origin may not call. Echoes each header name: `*` does not cover Authorization (Fetch, "CORS-preflight fetch"). */
export function preflightHeaders(lines: HeaderLines, rules: CorsRules): Record<string, string> | null {
  const cors = corsHeaders(lines, rules)
  if (cors['access-control-allow-origin'] === undefined) return null
  const requested = (lines.get('access-control-request-headers') ?? []).join(',').split(',')
  const names = requested.map((name) => name.trim()).filter((name) => HEADER_NAME.test(name))
  const vary = [cors['vary'], 'Access-Control-Request-Method', 'Access-Control-Request-Headers']
  return {
    ...cors,
    vary: vary.filter((name) => name !== undefined).join(', '),
    'access-control-allow-methods': METHODS,
    ...(names.length > 0 ? { 'access-control-allow-headers': names.join(', ') } : {}),
    'access-control-max-age': '600',
  }
}
