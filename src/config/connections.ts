/** The largest number of open connections at the public listener. */
import type { Config } from './schema.ts'

/**
 * For a container of 512 MiB that serves a few hundred streams. A flood of idle connections takes up to 12 KiB each (95 MiB), one of
 * unfinished TLS handshakes up to 91 KiB each (273 MiB; Node 24, measured).
 */
export const MOST_PLAIN = 8192
export const MOST_SECURE = 3072

export function mostConnections({ connections, tls }: Config['listen']): number {
  return connections ?? (tls === undefined ? MOST_PLAIN : MOST_SECURE)
}

/** Each worker accepts as many as the others: the primary hands connections out in turn. */
export function connectionsOfWorker(listen: Config['listen'], workers: number): number {
  return Math.ceil(mostConnections(listen) / workers)
}
