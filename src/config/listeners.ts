/** Finds listeners with the same address: the second one could not start. */
import { faultAt, type SourceDocument } from '../document/document.ts'
import type { Fault } from '../document/fault.ts'
import type { Config } from './schema.ts'

const ALL = ['0.0.0.0', '::', '[::]']

/** Finds two listeners on one port of one address. Port 0 is a free port each time. */
export function listenerFaults(document: SourceDocument, { listen, health, admin }: Config): readonly Fault[] {
  const listeners = [
    { name: 'listen', ...listen },
    { name: 'health', ...health },
    ...(admin === undefined ? [] : [{ name: 'admin', ...admin }]),
  ]
  return listeners.flatMap((one, at) =>
    listeners
      .slice(0, at)
      .filter(
        ({ host, port }) =>
          port !== 0 && port === one.port && (host === one.host || [host, one.host].some((all) => ALL.includes(all))),
      )
      .map((other) =>
        faultAt(document, [one.name, 'port'], `is that of ${other.name}, too`, 'each listener has a port of its own'),
      ),
  )
}
