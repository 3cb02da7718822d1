/** Whether a request of a browser comes from the console's own page, under a name that is really the gateway's. */
import type { FastifyRequest } from 'fastify'

export interface OwnOrigin {
  /**
   * False for a name that an attacker has bound to this address (DNS rebinding): the page of that name would be of the same
   * origin as the console.
   */
  isOwnHost(request: FastifyRequest): boolean
  /** True for a request without an Origin, and for one of the console's page. */
  isOwnPage(request: FastifyRequest): boolean
}

/** An attacker can bind no other address to these names. */
const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/

/** @param url the origin at which browsers reach the console; undefined for a loopback address of any port */
export function makeOwnOrigin(url: string | undefined): OwnOrigin {
  const configured = url === undefined ? null : new URL(url)
  return {
    isOwnHost({ raw }) {
      const [host = '', ...more] = raw.headersDistinct['host'] ?? []
      return more.length === 0 && (configured === null ? LOOPBACK.test(host) : host === configured.host)
    },
    isOwnPage({ headers: { host = '', origin, 'sec-fetch-site': site } }) {
      // Browsers that send it say with it that a page of another origin asks, also where they send no Origin.
      if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
      return origin === undefined || origin === (configured === null ? `http://${host}` : configured.origin)
    },
  }
}
