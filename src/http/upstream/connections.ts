/** Connections to the upstream, the last used first. An undici pool would search thousands of busy ones for each request. */
import { Client } from 'undici'

export interface Connections {
  take(): Client
  give(connection: Client): void
  drop(connection: Client): void
  readonly size: number
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
    // The idle connection was silent for too long or closed. A request that uses it just then fails by itself.
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
