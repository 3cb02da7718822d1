/** The process of the gateways, as the test sees it. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Order, Told } from './gateway.ts'

/** The process. */
export interface GatewayProcess {
  /** Starts its gateways. @returns the URL of each */
  start(gateways: (Order & { readonly order: 'start' })['gateways']): Promise<Readonly<Record<string, string>>>
  /** How long a fixed piece of work takes there, in milliseconds. */
  calibrate(): Promise<number>
  /** For how long the event loop was held at most while something was done, in milliseconds. */
  heldBy(work: () => Promise<void>): Promise<number>
  close(): Promise<void>
}

/** Starts it, with as much memory as 64 MiB of body need. */
export function startGatewayProcess(): GatewayProcess {
  const child = fork(new URL('./gateway.ts', import.meta.url), { execArgv: ['--max-old-space-size=3072'] })
  const tell = async (order: Order): Promise<Told> => {
    const answered = once(child, 'message')
    child.send(order)
    return ((await answered) as [Told])[0]
  }
  const milliseconds = async (order: Order): Promise<number> => {
    const told = await tell(order)
    return 'ms' in told ? told.ms : Number.NaN
  }
  return {
    async start(gateways) {
      const told = await tell({ order: 'start', gateways })
      return 'urls' in told ? told.urls : {}
    },
    calibrate: () => milliseconds({ order: 'calibrate' }),
    async heldBy(work) {
      await milliseconds({ order: 'begin' })
      await work()
      return milliseconds({ order: 'end' })
    },
    async close() {
      const over = once(child, 'exit')
      child.disconnect()
      await over
    },
  }
}
