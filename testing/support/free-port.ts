/** A free port, for programs that cannot choose one themselves and say which. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * The port is below the range that Linux gives to outgoing connections and to port 0 (32768 and above), so that no other
 * connection takes it before the program listens.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await Promise.race([once(server, 'listening').then(() => true), once(server, 'error').then(() => false)])
    server.close()
    if (isFree) return port
  }
}
