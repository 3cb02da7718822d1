/** Gateways as operators run them: several processes of `serve` on one store, before one upstream. */
import { chmodSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { serving, type Scope, type Serving } from '../support/program.ts'
import { makeFolder } from '../support/gateway.ts'
import { makeSigner } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { MARK, USER } from './ledger.ts'
import type { StoreAddress } from './places.ts'

/** One of them. */
export interface Gateway {
  /** The public base of its routes. */
  readonly base: string
  readonly healthUrl: string
  readonly pid: number
  /** kill -9; kept when it is gone. */
  readonly kill: () => Promise<void>
}

/** Where gateways are started. */
export interface Site {
  /** A token of the user `corp:<subject>`. */
  readonly tokenOf: (subject: string) => string
  /** Starts one more, which listens then. */
  readonly start: () => Promise<Gateway>
}

const BASE = '/api/copilotkit'

/**
 * Node ignores the signal of a write beyond a limit, and so the write fails; what runs the tests has a handler of it, in every
 * process, that ends the process where there is no other.
 */
const KEEP_ON = ['--import', `data:text/javascript,process.on('SIGXFSZ',()=>{})`]

/**
 * Prepares everything that they share. They end with the scope.
 * @param address under `ownership`
 * @param user the id of the user that they run as, by default that of this process
 * @param more what the configuration has besides, such as further upstreams
 */
export function prepareSite(scope: Scope, address: StoreAddress, upstreamUrl: string, user?: number, more: object = {}): Site {
  const { folder, remove } = makeFolder()
  scope.teardown(remove)
  const signer = makeSigner()
  scope.teardown(() => signer.remove())
  const file = join(folder, 'threadwarden.yaml')
  const configuration = {
    version: 1,
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    upstream: { url: upstreamUrl, basePath: BASE, transport: 'multi-route' },
    authentication: signer.authentication,
    identity: { headers: { id: USER } },
    forwardHeaders: [MARK],
    ownership: { ...address, unknownThread: 'claim' },
    limits: { newThreads: 'off', requests: 'off' },
    ...more,
  }
  writeFileSync(file, JSON.stringify(configuration))
  const { publicKeyFile } = signer.authentication.issuers['corp'] as { readonly publicKeyFile: string }
  if (user !== undefined) for (const path of [folder, dirname(publicKeyFile)]) chmodSync(path, 0o755)
  const tokens = new Map<string, string>()
  return {
    tokenOf: (subject) => {
      const known = tokens.get(subject)
      if (known !== undefined) return known
      const token = signer.sign(subject)
      tokens.set(subject, token)
      return token
    },
    start: async () => gatewayOf(await serving(scope, file, { node: KEEP_ON, ...(user === undefined ? {} : { user }) })),
  }
}

function gatewayOf({ pid, listening, end }: Serving): Gateway {
  return {
    base: `${String(listening['url'])}${BASE}`,
    healthUrl: String(listening['health']),
    pid,
    kill: async () => {
      await end('SIGKILL')
    },
  }
}

/** Waits until a gateway says that it can serve. */
export function ready(gateway: Gateway): Promise<void> {
  return until(async () => (await readiness(gateway)) === 200)
}

/** The status of /readyz. */
export async function readiness({ healthUrl }: Gateway): Promise<number> {
  const answer = await fetch(`${healthUrl}/readyz`)
  await answer.text()
  return answer.status
}
