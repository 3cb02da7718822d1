/** Finds the addresses of the gateway from its configuration. */
import { mountsOf } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import type { Subject } from './subject.ts'

/** The address of a listener as this machine can reach it; null if its port is not known. */
function origin({ host, port }: { readonly host: string; readonly port: number }): string | null {
  if (port === 0) return null
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

export function healthOrigin(config: Config): string | null {
  return origin(config.health)
}

/** The `runtimeUrl` of a frontend. The operator's address is that of the first upstream; the others are derived from it. */
export function publicBase({ config, mount, wishes }: Pick<Subject, 'config' | 'mount' | 'wishes'>): string | null {
  const isFirst = mount.key === mountsOf(config)[0].key
  if (wishes.url !== null && isFirst) return wishes.url
  const listening = wishes.url === null ? origin(config.listen) : new URL(wishes.url).origin
  return listening === null ? null : `${listening}${mount.publicPath}`
}

export const PORT_ZERO = 'its port is 0, so where it listens is not known'
