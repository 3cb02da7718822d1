/** A gateway as the pages on operation take it for granted: it runs in a folder, has users and threads, and its log is in a file. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { call, runInput, type Reply } from '../../testing/support/client.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { INFO, json, startUpstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { stringify } from 'yaml'
import type { CommandOptions } from './commands.ts'
import { ROOT } from './markdown.ts'

const CREDENTIAL = 'a-credential-of-the-operators-0123456789'

/** Threads that the upstream lists. */
const LISTED = [
  { id: '3f2c6f0e-8a43-4f0e-9d4c-1f4b5f6f7a10', createdById: 'alice' },
  { id: 'support-4711', createdById: 'bob' },
  { id: 'old-orphan', createdById: '' },
].map((thread) => ({
  ...thread,
  agentId: 'default',
  name: null,
  archived: false,
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
}))

export interface Operating {
  /** For the harness of commands. */
  readonly options: CommandOptions & { readonly folder: string; readonly env: Readonly<Record<string, string>> }
  readonly url: string
  /** A run of a user on a thread, with its answer. */
  readonly run: (user: string, thread: string) => Promise<Reply>
  /** Waits for a text in the log. */
  readonly logged: (text: string) => Promise<void>
}

/** @param config keys that differ from the usual */
export async function operating(t: Test, config: Readonly<Record<string, unknown>> = {}): Promise<Operating> {
  const { folder, remove } = makeFolder('on disk')
  const upstream = await startUpstream(async (request, response) => {
    // A list of one agent's threads, which the upstream of the tests does not take for a question of the gateway's own.
    if (request.method === 'GET') return json({ threads: LISTED })(request, response)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')
    await sleep(20)
    response.end('data: {"type":"RUN_FINISHED"}\n\n')
  })
  upstream.answerQuestions((request, response) =>
    json(/\/threads(?:\?|$)/.test(request.target) ? { threads: LISTED } : INFO)(request, response),
  )
  const signer = makeSigner()
  const [listen, health, admin] = [await freePort(), await freePort(), await freePort()]
  const tree = {
    version: 1,
    listen: { host: '127.0.0.1', port: listen },
    health: { host: '127.0.0.1', port: health },
    admin: { port: admin, credentialFile: './admin' },
    upstream: { url: upstream.url, basePath: '/api/copilotkit' },
    authentication: signer.authentication,
    ownership: { store: 'sqlite:./data/ownership.db', unknownThread: 'claim' },
    shutdown: { delay: '0s' },
    ...config,
  }
  writeFileSync(join(folder, 'threadwarden.yaml'), stringify(tree))
  writeFileSync(join(folder, 'admin'), CREDENTIAL)
  writeFileSync(join(folder, 'token'), signer.sign('alice'))
  const log = join(folder, 'gateway.log')
  const program = [join(ROOT, 'src/cli.ts'), 'serve', '--config', 'threadwarden.yaml']
  const child = spawn(process.execPath, program, { cwd: folder, stdio: ['ignore', openSync(log, 'w'), 'inherit'] })
  const closed = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await closed
    await upstream.close()
    signer.remove()
    remove()
  })
  const url = `http://127.0.0.1:${listen}`
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`serve ended with ${child.exitCode}`)
    return fetch(`http://127.0.0.1:${health}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  })
  return {
    url,
    run: (user, thread) => call(`${url}/api/copilotkit/agent/default/run`, { token: signer.sign(user), body: runInput(thread) }),
    logged: (text) => until(() => readFileSync(log, 'utf8').includes(text)),
    options: {
      folder,
      ports: { 8080: listen, 8081: health, 9090: admin },
      env: { PID: String(child.pid), CREDENTIAL },
    },
  }
}
