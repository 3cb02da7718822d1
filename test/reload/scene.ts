/** A gateway whose configuration a test changes while it runs, before an upstream that records. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { createSigner } from 'fast-jwt'
import type { Test } from 'tap'
import { startGateway, type Gateway } from '../../src/gateway/start.ts'
import { makeLog } from '../../src/observe/log.ts'
import { prepare } from '../../src/snapshot/load.ts'
import { configuration, type Changes } from '../../testing/support/configuration.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startUpstream, type Upstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

/** Everything. */
export interface Scene {
  readonly gateway: Gateway
  readonly upstream: Upstream
  readonly base: string
  readonly folder: string
  readonly file: string
  /** Every log line, parsed. */
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  /** Writes the configuration anew, as it is but for these values. */
  readonly write: (changes: Changes) => void
  /** Writes the policy anew. */
  readonly writePolicy: (text: string) => void
  /** A token of this user; with more claims, if the test says so. */
  readonly token: (subject: string, claims?: Record<string, unknown>) => string
  readonly health: (path: string) => Promise<{ readonly status: number; readonly text: string }>
}

/** Opens what a chat needs to signed-in users. */
export const CHAT = `version: 1
rules:
  - { routes: [info, threads/list], allow: [signed-in] }
  - { routes: [agent/run, agent/connect], allow: [signed-in], threads: [own, unknown] }
  - { routes: [agent/stop, threads/messages, threads/update], allow: [signed-in], threads: [own] }
`

const KEY = 'x'.repeat(64)
const ADMIN = 'a'.repeat(32)

/** A run whose body has not come yet. */
export interface Waiting {
  /** Sends the body. */
  readonly send: () => void
  readonly answer: Promise<{ readonly status: number; readonly text: string }>
}

/** Sends the head of a run, and waits until the gateway has admitted it and asks for the body (RFC 9110 §10.1.1). */
export async function waitingRun(scene: Scene, token: string, body: object): Promise<Waiting> {
  const text = JSON.stringify(body)
  const message = request(`${scene.base}/agent/default/run`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      expect: '100-continue',
    },
  })
  const answer = (async () => {
    const [response] = (await once(message, 'response')) as [IncomingMessage]
    return { status: response.statusCode ?? 0, text: await textOf(response) }
  })()
  message.flushHeaders()
  await once(message, 'continue')
  return { send: () => void message.end(text), answer }
}

/** The credential of the admin API. */
export const ADMIN_CREDENTIAL = ADMIN

/**
 * Starts it.
 * @param changes of the configuration, from the beginning
 */
export async function startScene(t: Test, changes: Changes = {}, policy = CHAT): Promise<Scene> {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const upstream = await startUpstream()
  const file = join(folder, 'threadwarden.yaml')
  const usual: Changes = {
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    admin: { port: 0, credential: ADMIN },
    'upstream.url': upstream.url,
    'authentication.issuers.corp': { issuer: 'corp', audiences: ['chat'], algorithms: ['HS256'], secretFile: 'secret' },
    'ownership.store': 'sqlite:./ownership.db',
    'limits.newThreads': 'off',
    'limits.requests': 'off',
    policy: './policy.yaml',
    ...changes,
  }
  const write = (more: Changes): void =>
    writeFileSync(file, JSON.stringify(configuration(structuredClone({ ...usual, ...more })), null, 2))
  const writePolicy = (text: string): void => writeFileSync(join(folder, 'policy.yaml'), text)
  writeFileSync(join(folder, 'secret'), KEY)
  writePolicy(policy)
  write({})
  const read = () => prepare(file, process.env)
  const prepared = read()
  if (!prepared.ok) throw new Error(JSON.stringify(prepared.faults, null, 2))
  const lines: Record<string, unknown>[] = []
  const log = makeLog('debug', { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) })
  const gateway = await startGateway(prepared.value, log, { prepare: read })
  let stopped: Promise<void> | undefined
  const stop: Gateway['stop'] = (deadline) => (stopped ??= gateway.stop(deadline))
  t.teardown(async () => {
    await stop(0)
    await upstream.close()
  })
  const health: Scene['health'] = async (path) => {
    const answer = await fetch(`${gateway.healthUrl}${path}`)
    return { status: answer.status, text: await answer.text() }
  }
  await until(async () => (await health('/readyz')).status === 200)
  const sign = createSigner({ key: KEY, algorithm: 'HS256' })
  return {
    gateway: { ...gateway, stop },
    upstream,
    base: `${gateway.url}/api/copilotkit`,
    folder,
    file,
    lines,
    write,
    writePolicy,
    token: (subject, claims = {}) =>
      sign({ iss: 'corp', aud: 'chat', sub: subject, exp: Math.floor(Date.now() / 1000) + 3600, ...claims }),
    health,
  }
}
