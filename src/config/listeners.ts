/** Finds listeners with the same address: the second one could not start. */
import type { Report } from '../document/document.ts'
import type { Config } from './schema.ts'

const ALL = ['0.0.0.0', '::', '[::]']

/** Reports two listeners on one port of one address. Port 0 is a free port each time. */
export function checkListeners({ listen, health, admin }: Config, report: Report): void {
  const listeners = [
    { name: 'listen', ...listen },
    { name: 'health', ...health },
    ...(admin === undefined ? [] : [{ name: 'admin', ...admin }]),
  ]
  for (const [at, { name, host, port }] of listeners.entries()) {
    for (const other of listeners.slice(0, at)) {
      const isSameHost = host === other.host || [host, other.host].some((one) => ALL.includes(one))
      if (port === 0 || port !== other.port || !isSameHost) continue
      report([name, 'port'], `is that of ${other.name}, too`, 'each listener has a port of its own')
    }
  }
}
