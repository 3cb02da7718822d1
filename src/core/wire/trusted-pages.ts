/** Decides whether a page that may use a credential cookie sent a request (docs/how-to/connect/cookie-sessions.md). */
import type { HeaderLines } from './headers.ts'

export interface PageRules {
  /** The gateway's own origins, by which browsers reach it. */
  readonly own: readonly string[]
  /** Origins of other pages that may send cookies. They count only for pages of the same site. */
  readonly listed: readonly string[]
}

export type IsFromTrustedPage = (method: string, lines: HeaderLines) => boolean

/**
 * Proof that a page of a trusted origin sent the request. A cookie alone proves nothing: the browser adds it to requests of any
 * page. `Sec-Fetch-Site` and `Origin` are forbidden header names (Fetch §2.2.2), so pages cannot write them.
 */
export function makeIsFromTrustedPage({ own, listed }: PageRules): IsFromTrustedPage {
  const hosts = new Set(own.flatMap(hostsOf))
  return (method, lines) => {
    const sites = lines.get('sec-fetch-site') ?? []
    const [origin] = lines.get('origin') ?? []
    if (sites.length > 1) return false
    switch (sites[0]) {
      case 'same-origin':
        // Browsers send no Origin with a GET to their page's own origin. Host must then name a configured one: a page at another
        // name of the same gateway may have a cookie of their common parent domain.
        return origin === undefined
          ? method === 'GET' && hosts.has(lines.get('host')?.[0]?.toLowerCase() ?? '')
          : own.includes(origin)
      case 'same-site':
        return origin !== undefined && (own.includes(origin) || listed.includes(origin))
      case undefined:
        // Without it, nothing tells whether a listed origin is of the same site.
        return origin !== undefined && own.includes(origin)
      default:
        // `cross-site`, `none` (an address that was typed, for which the gateway has no pages), and anything unknown.
        return false
    }
  }
}

/** As in `Host`: browsers leave out a default port, some proxies write it. */
function hostsOf(origin: string): readonly string[] {
  const { host, port, protocol } = new URL(origin)
  return port === '' ? [host, `${host}:${protocol === 'https:' ? 443 : 80}`] : [host]
}
