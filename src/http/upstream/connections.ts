/**
 * The connections to the upstream: one request at a time on each, as many as there are requests under way, and the one that
 * was used last is used next. A pool of undici's looks through all that are busy for each request, of which with thousands of
 * open streams there are thousands, and keeps what it holds of a connection when that is closed.
 */
import { Client } from 'undici'

/** Connections, lent for one request each. */
export interface Connections {
  /** One that nothing is under way on: it is opened by its first request. */
  take(): Client
  /** Gives it back when the answer has come whole. */
  give(connection: Client): void
  /** Lets go of one on which something went wrong. */
  drop(connection: Client): void
  /** How many there are, under way or idle. */
  readonly size: number
  /** Closes each when what is under way on it is over. Nothing new can be sent. */
  close(): Promise<void>
  destroy(): Promise<void>
}

/** Makes them; none is open yet. */
export function connectionsTo(url: string, options: Client.Options): Connections {
  const all = new Set<Client>()
  // The last one used stands at the end.
  const idle: Client[] = []
  let closing = false

  const drop = (client: Client): void => {
    if (!all.delete(client)) return
    void client.destroy()
  }
  const open = (): Client => {
    const client = new Client(url, options)
    all.add(client)
    // It was silent for too long, or its other end closed it. Whoever uses one just then is told by their request.
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
