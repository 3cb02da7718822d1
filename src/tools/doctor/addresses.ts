/** Where the gateway of a configuration is found. */
import { mountsOf } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import type { Subject } from './subject.ts'

/** An address on which a gateway may listen, as one on this machine can be reached; null if nobody can know its port. */
function origin({ host, port }: { readonly host: string; readonly port: number }): string | null {
  if (port === 0) return null
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

/** The origin of the health listener. */
export function healthOrigin(config: Config): string | null {
  return origin(config.health)
}

/**
 * The base of the gateway's routes to an upstream: what a frontend has as its `runtimeUrl`. The address that was wished is that of
 * the first upstream; the others are found beside it.
 */
export function publicBase({ config, mount, wishes }: Pick<Subject, 'config' | 'mount' | 'wishes'>): string | null {
  const isFirst = mount.key === mountsOf(config)[0].key
  if (wishes.url !== null && isFirst) return wishes.url
  const listening = wishes.url === null ? origin(config.listen) : new URL(wishes.url).origin
  return listening === null ? null : `${listening}${mount.publicPath}`
}

/** Why a listener can't be asked. */
export const PORT_ZERO = 'its port is 0, so where it listens is not known'
