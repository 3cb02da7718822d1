/** Opens a connection to a base such as `http://127.0.0.1:8080`; with TLS for `https:`, and no certificate is verified. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectSecurely, type ConnectionOptions } from 'node:tls'

/** @param options of the client's TLS */
export async function dial(base: string, options: ConnectionOptions = {}): Promise<Socket> {
  const { hostname, port, protocol } = new URL(base)
  if (protocol === 'http:') {
    const plain = connect(Number(port), hostname)
    await once(plain, 'connect')
    return plain
  }
  const secure = connectSecurely({ host: hostname, port: Number(port), rejectUnauthorized: false, ...options })
  await once(secure, 'secureConnect')
  return secure
}
