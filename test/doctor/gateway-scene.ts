/** A gateway that is running, with a configuration by which the doctor finds it. */
import { createServer, request as send, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { sayOnFailure } from '../../testing/support/decided.ts'
import { startTestGateway, type ConfigTree, type TestGateway } from '../../testing/support/gateway.ts'
import { makeSigner, type Signer } from '../../testing/support/tokens.ts'
import type { Changes } from '../../testing/support/configuration.ts'

/** The gateway, and how it is found. */
export interface Scene {
  readonly gateway: TestGateway
  readonly signer: Signer
  /** Where clients reach it. */
  readonly base: string
  /** What a configuration says that has the ports of this gateway. */
  readonly changes: Changes
}

/** Starts a gateway before an upstream. */
export async function startScene(t: Test, upstreamUrl: string, config: ConfigTree = {}): Promise<Scene> {
  const signer = makeSigner()
  const { upstream, ...rest } = config as { upstream?: object }
  const gateway = await startTestGateway({
    authentication: signer.authentication,
    ...rest,
    upstream: { url: upstreamUrl, ...upstream },
  })
  sayOnFailure(t, gateway)
  t.teardown(async () => {
    await gateway.close()
    signer.remove()
  })
  const port = (url: string): number => Number(new URL(url).port)
  return {
    gateway,
    signer,
    base: `${gateway.url}/api/copilotkit`,
    changes: {
      'upstream.url': upstreamUrl,
      'listen.port': port(gateway.url),
      'health.port': port(gateway.healthUrl),
      authentication: signer.authentication,
      ...rest,
    },
  }
}

/** What a proxy does with an answer on its way. */
export type Passing = (answer: IncomingMessage, response: ServerResponse) => void

/** A proxy before a server. */
export async function startProxy(t: Test, target: string, pass: Passing): Promise<string> {
  const server = createServer((request, response) => {
    const { method, url, headers } = request
    const onward = send(`${target}${url ?? ''}`, { method: method ?? '', headers }, (answer) => pass(answer, response))
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
