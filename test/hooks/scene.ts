/** Hooks before the real runtime, mounted as a test says, and people who are signed in. */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { Test } from 'tap'
import { listen, stop } from '../../examples/http.ts'
import { createCopilotRuntimeHandler, mount, type Mounting } from '../../examples/mounting.ts'
import { startRuntime, type Runtime, type RuntimeOptions } from '../../examples/runtime.ts'
import { makeHooks, type CreateHandler, type Hooks } from '../../src/sdk/hooks/index.ts'
import { makeFolder, type ConfigTree } from '../../testing/support/gateway.ts'
import { recordIn } from '../../testing/support/in-process.ts'
import { makeSigner, type Signer } from '../../testing/support/tokens.ts'

/** The kind of the runtime's object. */
export type RuntimeObject = Runtime['runtime']

/** Everything that is running. */
export interface Scene {
  readonly hooks: Hooks
  /** Its `requests` are what came to the runtime behind every hook. */
  readonly runtime: Runtime
  readonly signer: Signer
  readonly alice: string
  readonly bob: string
  readonly olga: string
  /** The configuration, as it stands in its file. */
  readonly tree: ConfigTree
  /** Writes another one into the file. */
  readonly write: (tree: ConfigTree) => void
  /** The log of the hooks. */
  readonly lines: Record<string, unknown>[]
  /** Serves the runtime, with these hooks where no others are named; gives the base of its routes. */
  readonly serve: (mounting?: Partial<Mounting>) => Promise<string>
}

/** What differs from the usual. */
export interface SceneOptions {
  readonly config?: ConfigTree
  readonly runtime?: RuntimeOptions
  /** By default the runtime's own. */
  readonly createHandler?: CreateHandler<RuntimeObject>
}

/** Starts it; everything ends with the test. */
export async function startScene(t: Test, options: SceneOptions = {}): Promise<Scene> {
  const { folder, remove } = makeFolder()
  const signer = makeSigner()
  const runtime = await startRuntime(options.runtime)
  recordIn(runtime.runtime, runtime.requests)
  const file = join(folder, 'threadwarden.yaml')
  const tree = {
    version: 1,
    upstream: { url: 'http://nowhere.invalid', basePath: '/api/copilotkit' },
    health: { host: '127.0.0.1', port: 0 },
    authentication: signer.authentication,
    ownership: { store: 'sqlite:./ownership.db', unknownThread: 'claim' },
    limits: { newThreads: 'off', requests: 'off' },
    ...options.config,
  }
  const write = (next: ConfigTree): void => writeFileSync(file, JSON.stringify(next))
  write(tree)
  const lines: Record<string, unknown>[] = []
  const hooks = await makeHooks({
    config: file,
    runtime: runtime.runtime,
    createHandler: options.createHandler ?? createCopilotRuntimeHandler,
    log: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    health: true,
  })
  const ends: (() => Promise<unknown>)[] = []
  t.teardown(async () => {
    await hooks.close()
    for (const end of ends) await end()
    await runtime.close()
    signer.remove()
    remove()
  })
  await hooks.ready()
  runtime.requests.length = 0
  return {
    hooks,
    runtime,
    signer,
    alice: signer.sign('alice'),
    bob: signer.sign('bob'),
    olga: signer.sign('olga', { role: 'operator' }),
    tree,
    write,
    lines,
    async serve(mounting = {}) {
      const server = createServer(mount({ runtime: runtime.runtime, hooks, ...mounting }))
      ends.push(() => stop(server))
      const { origin } = await listen(server, 0, '127.0.0.1')
      return `${origin}/api/copilotkit`
    },
  }
}
