/** What a failed connection means, in words for an operator. */

/** A failure, explained. */
export interface Explained {
  readonly message: string
  readonly remedy: string
}

/**
 * Explains why an upstream gave no answer.
 * @param code the error code
 * @param url where it was looked for
 */
export function explainUpstream(code: string, url: string): Explained {
  switch (code) {
    case 'ECONNREFUSED':
      return { message: `nothing listens on ${url}`, remedy: 'start the runtime, or correct upstream.url' }
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return {
        message: `the host name in ${url} cannot be resolved here (${code})`,
        remedy: 'correct upstream.url, or the DNS of this machine',
      }
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return {
        message: `${url} takes no connection (${code})`,
        remedy: 'look at the address, the network policy and the firewall between; upstream.timeouts.connect bounds the wait',
      }
    case 'EPROTO':
      return { message: `${url} speaks no TLS`, remedy: 'write http:// in upstream.url, or the port that speaks https' }
    default:
      if (code.startsWith('ERR_SSL')) return explainUpstream('EPROTO', url)
      if (/CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS/.test(code)) {
        return {
          message: `the certificate of ${url} is not trusted (${code})`,
          remedy: 'name its authority in upstream.ca, and in upstream.url the host name that the certificate is for',
        }
      }
      return {
        message: `${url} closes the connection without an answer in HTTP (${code})`,
        remedy: 'is it the port of the runtime, and http:// or https:// as that port speaks?',
      }
  }
}
