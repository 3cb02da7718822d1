/** Explains why an upstream cannot be reached, and what to change. */

export type UpstreamSetting = 'url' | 'ca' | 'timeout' | 'certificate' | 'key' | 'minVersion' | 'serverName'

export interface FailurePlace {
  readonly url: string
  readonly server: 'runtime' | 'agent' | 'server'
  /** The name of a setting, as the reader knows it: upstream.tls.ca, or --upstream-ca. */
  readonly setting: (key: UpstreamSetting) => string
}

export interface FailureText {
  readonly message: string
  readonly remedy: string
}

/** @param code the error code of Node, OpenSSL or undici */
export function explainFailure(code: string, place: FailurePlace): FailureText {
  const { url, server, setting } = place
  switch (code) {
    case 'ECONNREFUSED':
      return { message: `nothing listens on ${url}`, remedy: `start the ${server}, or correct ${setting('url')}` }
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return {
        message: `the host name in ${url} cannot be resolved here (${code})`,
        remedy: `correct ${setting('url')}, or the DNS of this machine`,
      }
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return {
        message: `${url} accepts no connection (${code})`,
        remedy: `check the address, the network policy and firewalls; ${setting('timeout')} limits the wait`,
      }
    case 'EPROTO':
      return { message: `${url} does not use TLS`, remedy: `write http:// in ${setting('url')}, or the port that uses https` }
    default:
      // The alerts of a server (RFC 8446 §6.2): it requires a client certificate, or does not accept this one.
      if (/_ALERT_(?:\w*CERTIFICATE|HANDSHAKE_FAILURE|UNKNOWN_CA|ACCESS_DENIED)/.test(code)) {
        return {
          message: `${url} does not accept the client certificate of the gateway, or requires one (${code})`,
          remedy: `write ${setting('certificate')} and ${setting('key')}, with a certificate that the ${server} accepts`,
        }
      }
      if (/PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/.test(code)) {
        return {
          message: `${url} has no TLS version in common with the gateway (${code})`,
          remedy: `see ${setting('minVersion')}`,
        }
      }
      if (code.startsWith('ERR_SSL')) return explainFailure('EPROTO', place)
      if (/CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS/.test(code)) {
        return {
          message: `the certificate of ${url} is not trusted (${code})`,
          remedy: `write its certificate authority to ${setting('ca')}, and the host name of the certificate to ${setting('url')} or ${setting('serverName')}`,
        }
      }
      return {
        message: `${url} closes the connection without an HTTP answer (${code})`,
        // With TLS 1.3 a server refuses a client certificate after the request (RFC 8446 §4.4.2.4), and only closes the connection.
        remedy: `check that it is the port of the ${server}, and that http:// or https:// is right for that port${
          url.startsWith('https:') ? `; a server that requires a client certificate needs ${setting('certificate')}` : ''
        }`,
      }
  }
}
