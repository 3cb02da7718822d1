/** A free port, for programs that cannot choose one themselves and say which. */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:http'
import { listen, stop } from '../../examples/http.ts'

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
    const holder = createServer()
    const probe = createServer()
    try {
      await listen(holder, port + 1, '127.0.0.1')
      await listen(probe, port, '127.0.0.1')
      holder.unref()
      return port
    } catch (error) {
      await stop(holder)
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    } finally {
      await stop(probe)
    }
  }
}
