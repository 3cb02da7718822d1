/** A port that is taken. */
import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import type { Test } from 'tap'

/** Takes a free port until the test is over, and says which. */
export async function listening(t: Test, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}
