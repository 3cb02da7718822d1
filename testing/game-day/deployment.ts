/** A gateway in a process of its own with an upstream, an issuer and users, of which one part will fail. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { call, runInput } from '../support/client.ts'
import { makeFolder } from '../support/gateway.ts'
import { startKeyServer, type KeyServer } from '../support/key-server.ts'
import { serving, type Scope } from '../support/program.ts'
import { claims, jwkOf, PAIRS, token } from '../support/signing.ts'
import { events, json, startUpstream, type Answering, type Upstream } from '../support/upstream.ts'

export interface Deployment {
  readonly folder: string
  /** Its configuration, as JSON. */
  readonly file: string
  readonly health: string
  /** The admin listener, with the console. */
  readonly admin: string
  readonly upstream: Upstream
  readonly issuer: KeyServer
  /** From now on, tokens are signed with a key that the issuer does not publish. */
  signWithUnknownKey(): void
  /** Ends its users' requests. */
  stop(): Promise<void>
}

/** How often each of its users sends a request, in milliseconds. */
const PACE = 500
export const CREDENTIAL = 'the-credential-of-the-game-day-0123456789'

const USERS = ['alice', 'bob', 'carol', 'dave']

/** Events of a run, and lists without threads. */
export const HEALTHY: Answering = (request, response) =>
  (request.method === 'POST' ? events({ type: 'RUN_STARTED' }, { type: 'RUN_FINISHED' }) : json({ threads: [], messages: [] }))(
    request,
    response,
  )

/** Where a store outlives the machine, as in a deployment: memory would not show a locked file differently, but doctor warns of it. */
export async function startDeployment(scope: Scope, config: Readonly<Record<string, unknown>>): Promise<Deployment> {
  const { folder, remove } = makeFolder('on disk')
  scope.teardown(remove)
  const upstream = await startUpstream(HEALTHY)
  scope.teardown(() => upstream.close().catch(() => {}))
  const issuer = await startKeyServer(scope)
  issuer.keys(jwkOf(PAIRS.rsa.publicKey, { kid: 'k1', alg: 'RS256' }))
  const file = join(folder, 'threadwarden.yaml')
  const corp = {
    issuer: 'https://login.example.com/',
    audiences: ['chat'],
    algorithms: ['RS256'],
    jwksUri: `${issuer.url}/jwks`,
    keyCache: '1m',
  }
  const tree = {
    version: 1,
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    admin: { port: 0, credential: CREDENTIAL, console: {} },
    upstream: { url: upstream.url, basePath: '/api/copilotkit', transport: 'multi-route' },
    authentication: { issuers: { corp } },
    ownership: { store: 'sqlite:./ownership.db', unknownThread: 'claim' },
    ...config,
  }
  writeFileSync(file, JSON.stringify(tree, null, 2))
  const { listening } = await serving(scope, file, { folder })
  const url = String(listening['url'])
  const health = String(listening['health'])
  const admin = String(listening['admin'])
  let isStopped = false
  let key: { readonly kid: string; readonly pair: keyof typeof PAIRS } = { kid: 'k1', pair: 'rsa' }
  const person = async (user: string): Promise<void> => {
    for (let turn = 0; !isStopped; turn += 1) {
      const now = Math.floor(Date.now() / 1000)
      const signed = token(
        { alg: 'RS256', kid: key.kid },
        claims({ sub: user, iat: now, exp: now + 300 }),
        PAIRS[key.pair].privateKey,
      )
      const thread = `${user}-${turn % 20}`
      const path = turn % 2 === 0 ? 'agent/default/run' : `threads/${user}-${(turn - 1) % 20}/messages`
      const body = turn % 2 === 0 ? { body: runInput(thread) } : {}
      // What a user gets is for the metrics to say.
      await call(`${url}/api/copilotkit/${path}`, { token: signed, ...body }).catch(() => {})
      await sleep(PACE)
    }
  }
  const people = Promise.all(USERS.map(person))
  return {
    folder,
    file,
    health,
    admin,
    upstream,
    issuer,
    signWithUnknownKey: () => void (key = { kid: 'k2', pair: 'otherRsa' }),
    async stop() {
      isStopped = true
      await people
    },
  }
}

/** Removes the database of a deployment with what belongs to it. */
export function removeStore({ folder }: Deployment): void {
  for (const end of ['', '-wal', '-shm']) rmSync(join(folder, `ownership.db${end}`), { force: true })
}
