/** TLS of the public listener: the limits of a handshake, its failures, and the replacement of the certificate. */
import type { Server } from 'node:http'
import type { ServerOptions } from 'node:https'
import type { Socket } from 'node:net'
import { Server as TlsServer, type TLSSocket } from 'node:tls'
import type { Logger } from '../../observe/log.ts'
import type { TlsMetrics } from '../../observe/metrics.ts'
import type { ListenerTls } from '../../tls/settings.ts'

/** Milliseconds: no other limit ends a connection before its handshake is over. */
const HANDSHAKE_TIMEOUT_MS = 10_000

export function secureListener(tls: ListenerTls): ServerOptions {
  return {
    ...tls,
    requestCert: tls.ca !== undefined,
    rejectUnauthorized: true,
    // A client that offers only h2 is refused in the handshake (docs/contributing/decisions/http2.md).
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
  }
}

export interface SecureConnections {
  /** For new connections; open ones keep the certificate that they began with. */
  readonly replace: (tls: ListenerTls) => void
  /** Destroys all connections. A server knows only those whose handshake is over. */
  readonly destroy: () => void
}

/** Node's types do not name the socket below. */
type Wrapping = Socket & { readonly _parent?: Socket | null }

/** The TCP connection under a TLS one, or the socket itself. A listener reports the former as a new connection. */
export function carrierOf(socket: Socket): Socket {
  return (socket as Wrapping)._parent ?? socket
}

/** Null for a server without TLS. */
export function watchHandshakes(server: Server, metrics: TlsMetrics, log: Logger): SecureConnections | null {
  if (!(server instanceof TlsServer)) return null
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    // Asked for while it is open: a socket keeps an address that it was asked for.
    void socket.remoteAddress
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  // Before Node's own listener, which would treat the failure as an unreadable request.
  server.prependListener('tlsClientError', (error: Error & { readonly code?: string }, socket: TLSSocket) => {
    const client = socket.remoteAddress ?? carrierOf(socket).remoteAddress
    socket.destroy()
    // Set for a client certificate that was not accepted; Node's types say Error, but it is a code.
    const refused = socket.authorizationError as unknown as string | null | undefined
    const code = refused ?? error.code ?? 'unknown'
    const reason = refused ? 'client-certificate' : reasonOf(code)
    metrics.handshakeFailed(reason)
    // Probes of load balancers open connections and close them.
    if (reason === 'closed') log.debug({ client, reason, detail: code }, 'a TLS handshake failed')
    else log.info({ client, reason, detail: code }, 'a TLS handshake failed')
  })
  return {
    replace: (tls) => server.setSecureContext(tls),
    destroy() {
      for (const socket of open) socket.destroy()
    },
  }
}

type HandshakeFailure = Parameters<TlsMetrics['handshakeFailed']>[0]

function reasonOf(code: string): HandshakeFailure {
  switch (code) {
    case 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE':
      return 'client-certificate'
    case 'ERR_TLS_HANDSHAKE_TIMEOUT':
      return 'timeout'
    case 'ECONNRESET':
      return 'closed'
    default:
      return 'protocol'
  }
}
