/** Explains a failed connection to an operator. */

export interface Explained {
  readonly message: string
  readonly remedy: string
}

/** @param at the path of the upstream in the configuration */
export function explainUpstream(code: string, url: string, at: string, what: 'runtime' | 'agent'): Explained {
  switch (code) {
    case 'ECONNREFUSED':
      return { message: `nothing listens on ${url}`, remedy: `start the ${what}, or correct ${at}.url` }
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return {
        message: `the host name in ${url} cannot be resolved here (${code})`,
        remedy: `correct ${at}.url, or the DNS of this machine`,
      }
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return {
        message: `${url} takes no connection (${code})`,
        remedy: `look at the address, the network policy and the firewall between; ${at}.timeouts.connect bounds the wait`,
      }
    case 'EPROTO':
      return { message: `${url} speaks no TLS`, remedy: `write http:// in ${at}.url, or the port that speaks https` }
    default:
      if (code.startsWith('ERR_SSL')) return explainUpstream('EPROTO', url, at, what)
      if (/CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS/.test(code)) {
        return {
          message: `the certificate of ${url} is not trusted (${code})`,
          remedy: `name its authority in ${at}.ca, and in ${at}.url the host name that the certificate is for`,
        }
      }
      return {
        message: `${url} closes the connection without an answer in HTTP (${code})`,
        remedy: `is it the port of the ${what}, and http:// or https:// as that port speaks?`,
      }
  }
}
