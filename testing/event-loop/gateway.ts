/**
 * Gateways in a process of their own, with a clock of how long their event loop is held. What counts is the time that the main
 * thread computes between two turns of a timer, not the time on the wall: whatever else the machine does counts for nothing.
 */
import { startTestGateway, type ConfigTree } from '../support/gateway.ts'

/** What the process is told. */
export type Order =
  | {
      readonly order: 'start'
      readonly gateways: Readonly<Record<string, { readonly config: ConfigTree; readonly policy?: string }>>
    }
  | { readonly order: 'begin' }
  | { readonly order: 'end' }
  | { readonly order: 'calibrate' }

/** What it tells: where its gateways are; or milliseconds. */
export type Told = { readonly urls: Readonly<Record<string, string>> } | { readonly ms: number }

const cpu = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

let longest = 0
let last = cpu()
const tick = (): void => {
  const now = cpu()
  longest = Math.max(longest, now - last)
  last = now
  setTimeout(tick, 1)
}
tick()

const DOCUMENT = JSON.stringify(
  Array.from({ length: 5000 }, (_, at) => ({
    id: `message-${at}`,
    role: 'user',
    content: 'a line of text. '.repeat(8),
    n: at * 1.5,
  })),
)

/** How long this process takes for a fixed piece of work that nothing can interrupt. */
function calibrated(): number {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 7; round += 1) {
    const begin = cpu()
    for (let times = 0; times < 4; times += 1) JSON.stringify(JSON.parse(DOCUMENT))
    least = Math.min(least, cpu() - begin)
  }
  return least
}

async function obey(order: Order): Promise<Told> {
  switch (order.order) {
    case 'start': {
      const urls: Record<string, string> = {}
      for (const [name, { config, policy }] of Object.entries(order.gateways)) {
        const gateway = await startTestGateway(config, { policy })
        await gateway.ready()
        urls[name] = gateway.url
        process.once('disconnect', () => void gateway.close())
      }
      return { urls }
    }
    case 'calibrate':
      return { ms: calibrated() }
    case 'begin':
      longest = 0
      last = cpu()
      return { ms: 0 }
    case 'end':
      return { ms: longest }
  }
}

process.on('message', (order: Order) => void obey(order).then((told) => process.send?.(told)))
process.once('disconnect', () => setTimeout(() => process.exit(), 1000).unref())
