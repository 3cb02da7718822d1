/** Starts gateways that take requests: one that listens, or one in front of a runtime of the same process. */
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { assemble, urlOf, type RunningGateway, type Surroundings } from './assembly.ts'
import { listenOn, listenOnSocket } from '../http/listeners/listening.ts'
import type { Upstream } from '../http/upstream/upstream.ts'
import type { Logger } from '../observe/log.ts'
import type { Prepared } from '../snapshot/load.ts'

export type { Machine, Surroundings } from './assembly.ts'

export interface Gateway extends RunningGateway {
  readonly url: string
  readonly healthUrl: string
  /** Null where the admin API is off. */
  readonly adminUrl: string | null
  /** Resolves with true when each process that serves callers has answered; with false if no process serves them. */
  answers(): Promise<boolean>
  /** Resolves when each process that serves callers has the keys of every issuer, or has failed to fetch them once. */
  keysAttempted(): Promise<void>
}

/** Only its health listener and the admin API are on the network. */
export interface InnerGateway extends RunningGateway {
  accept(connection: Duplex): void
  readonly healthUrl: string | null
  readonly adminUrl: string | null
}

/** @throws StoreUnavailable, IssuerFaults, or the listener's error; nothing is left open then */
export async function startGateway(prepared: Prepared, log: Logger, surroundings: Surroundings = {}): Promise<Gateway> {
  const { listen, health } = prepared.config
  return assemble(prepared, log, surroundings, null, async ({ app, healthApp, running, listenForAdmin, snapshots }) => {
    await (listen.fd === undefined ? listenOn(app, listen.host, listen.port) : listenOnSocket(app, listen.fd))
    await listenOn(healthApp, health.host, health.port)
    return {
      ...running,
      url: urlOf(app),
      healthUrl: urlOf(healthApp),
      adminUrl: await listenForAdmin(),
      answers: () => Promise.resolve(true),
      keysAttempted: () => snapshots.current().keysAttempted(),
    }
  })
}

/** `prepared` need not say where the upstream is. @throws as startGateway */
export async function startInside(
  prepared: Prepared,
  log: Logger,
  inside: { readonly runtime: Upstream; readonly health: boolean },
  surroundings: Surroundings = {},
): Promise<InnerGateway> {
  const { health } = prepared.config
  return assemble(prepared, log, surroundings, inside.runtime, async ({ app, healthApp, running, listenForAdmin }) => {
    const connections = new Set<Duplex>()
    // Closing the application waits only for connections of a listening server.
    app.addHook('onClose', async () => {
      while (connections.size > 0) await Promise.race([...connections].map((connection) => once(connection, 'close')))
    })
    await app.ready()
    if (inside.health) await listenOn(healthApp, health.host, health.port)
    return {
      ...running,
      accept: (connection) => {
        connections.add(connection)
        connection.once('close', () => connections.delete(connection))
        app.server.emit('connection', connection)
      },
      healthUrl: inside.health ? urlOf(healthApp) : null,
      adminUrl: await listenForAdmin(),
    }
  })
}
