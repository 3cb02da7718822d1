/** A free port, for programs that cannot choose one themselves and say which. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/**
 * Below the range that Linux gives to outgoing connections and to port 0 (32768 and above), so that no other connection takes the
 * port before the program listens.
 */
const RANGE = [10_000, 32_000] as const

/**
 * An even port that no other caller of this function gets while this process runs, though the program listens only later: the
 * process holds the odd port behind it.
 */
export async function freePort([from, to]: readonly [number, number] = RANGE): Promise<number> {
  for (;;) {
    const port = 2 * randomInt(from / 2, to / 2)
    const held = await listening(port + 1)
    if (held === null) continue
    const probe = await listening(port)
    if (probe === null) {
      held.close()
      continue
    }
    probe.close()
    await once(probe, 'close')
    held.unref()
    return port
  }
}

/** Null if another one listens there. */
async function listening(port: number): Promise<Server | null> {
  const server = createServer().listen(port, '127.0.0.1')
  // `once` rejects at an error.
  const isFree = await once(server, 'listening').then(
    () => true,
    () => false,
  )
  return isFree ? server : null
}
