/** Gateways of several configurations in one process, before an upstream that takes everything. */
import { request } from 'node:http'
import { join } from 'node:path'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../support/gateway.ts'
import { makeSigner } from '../support/tokens.ts'
import { startGatewayProcess } from './process.ts'
import type { Shape } from './shapes.ts'
import { startSink } from './upstream.ts'

/** In place of the status of a request that was cut off. */
export const BROKEN_OFF = -1

/** Tools and forwarded properties by name, so that what is read has to be written again in part. */
const NARROW = JSON.stringify({
  version: 1,
  tools: ['t1', 't2'],
  forwardedProps: [{ name: 'k1' }],
  rules: [
    { routes: ['info', 'transcribe', 'threads/list'], allow: ['signed-in'] },
    { routes: ['agent/run'], allow: ['signed-in'], threads: ['own', 'unknown'] },
  ],
})

const VERIFIED = JSON.stringify({
  version: 1,
  messages: { history: 'verify' },
  rules: [{ routes: ['agent/run'], allow: ['signed-in'], threads: ['own', 'unknown'] }],
})

/** What users of the table call their threads: as long as names can be, and as long as they can be written. */
export const NAMES: Readonly<Record<string, string>> = { carol: '\u0001'.repeat(1000), dave: '漢'.repeat(1000) }

/** A store in which each of them has more threads than a list has. */
async function namedThreads(file: string): Promise<void> {
  const store = await openSqliteStore(file)
  for (const [user, name] of Object.entries(NAMES)) {
    const rows = Array.from({ length: 1100 }, (_, at) => ({
      scope: '',
      threadId: `${user}-${at}`,
      owner: `corp:${user}`,
      agentId: 'default',
      name,
      archived: false,
      createdAt: 1,
      lastUsedAt: at,
    }))
    await store.import(rows, { dryRun: false, settleConflicts: false })
  }
  await store.close()
}

/** Gateways before one upstream, and somebody to ask them. */
export async function startDeployment() {
  const upstream = await startSink()
  const signer = makeSigner()
  const gateways = startGatewayProcess()
  const { folder, remove } = makeFolder()
  const close = async (): Promise<void> => {
    await gateways.close()
    remove()
    upstream.close()
    signer.remove()
  }
  const to = (transport: string, more: Record<string, unknown> = {}): { readonly config: Record<string, unknown> } => ({
    config: {
      authentication: signer.authentication,
      upstream: { url: upstream.url, transport },
      log: { level: 'error' },
      ...more,
    },
  })
  const table = join(folder, 'table.db')
  await namedThreads(table)
  const urls = await gateways.start({
    routes: to('multi-route'),
    narrow: { ...to('multi-route'), policy: NARROW },
    single: to('single-route'),
    observed: to('multi-route', { enforcement: 'observe' }),
    owned: to('multi-route'),
    verified: { ...to('multi-route', { limits: { runs: 'off' } }), policy: VERIFIED },
    table: to('multi-route', { ownership: { store: `sqlite:${table}`, lists: 'table' } }),
  })
  const token = (user = 'alice'): string => signer.sign(user)
  const ask = ({ to, path, type }: Pick<Shape, 'to' | 'path' | 'type'>, body: Buffer): Promise<number> =>
    new Promise((resolve) => {
      const headers = {
        authorization: `Bearer ${token()}`,
        'content-type': type,
        'content-length': body.length,
        connection: 'close',
      }
      const call = request(`${urls[to] ?? ''}/api/copilotkit${path}`, { method: 'POST', headers }, (answer) => {
        resolve(answer.statusCode ?? 0)
        answer.resume()
      })
      // What is refused before it has come is read no further, and the answer may be lost with the connection.
      call.on('error', () => resolve(BROKEN_OFF))
      call.end(body)
    })
  return { gateways, urls, token, ask, upstream, close }
}
