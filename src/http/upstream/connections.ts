/**
 * The connections to the upstream: one request at a time on each, without a cap, the last used first.
 * An undici pool searches all busy connections for each request, which are thousands with thousands of open streams.
 * It also keeps what it holds of a connection after the connection is closed.
 */
import { Client } from 'undici'

export interface Connections {
  /** A connection without a request under way; its first request opens it. */
  take(): Client
  /** Gives a connection back when its answer has come whole. */
  give(connection: Client): void
  drop(connection: Client): void
  readonly size: number
  /** Closes each connection once its request is over. Nothing new can be sent. */
  close(): Promise<void>
  destroy(): Promise<void>
}

export function connectionsTo(url: string, options: Client.Options): Connections {
  const all = new Set<Client>()
  // The last used connection is at the end.
  const idle: Client[] = []
  let closing = false

  const drop = (client: Client): void => {
    if (!all.delete(client)) return
    void client.destroy()
  }
  const open = (): Client => {
    const client = new Client(url, options)
    all.add(client)
    // The connection was silent for too long, or its other end closed it.
    // A caller who uses it just then learns that from the request.
    client.on('disconnect', () => {
      const at = idle.indexOf(client)
      if (at === -1) return
      idle.splice(at, 1)
      drop(client)
    })
    if (closing) void client.close()
    return client
  }
  const each = async (step: (client: Client) => Promise<void>): Promise<void> => {
    closing = true
    idle.length = 0
    await Promise.all([...all].map(step))
  }

  return {
    take: () => idle.pop() ?? open(),
    give(client) {
      if (closing || client.destroyed || !all.has(client)) all.delete(client)
      else idle.push(client)
    },
    drop,
    get size() {
      return all.size
    },
    close: () => each((client) => client.close()),
    destroy: () => each((client) => client.destroy()),
  }
}
