/**
 * Starts a gateway from a ready configuration under `examples/deployments`, as it stands there: with its policy and its
 * references into the environment. Only ports, and the place of the store, are the test's.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Outcome } from '../../src/document/document.ts'
import { prepare, type Prepared } from '../../src/snapshot/load.ts'
import { makeFolder, startPrepared, type TestGateway } from './gateway.ts'

/** The file of a deployment. */
export function deploymentFile(name: string): string {
  return fileURLToPath(new URL(`../../examples/deployments/${name}/threadwarden.yaml`, import.meta.url))
}

/**
 * Starts it.
 * @param name the folder of the deployment
 * @param environment what its references `${env:…}` name: addresses of what the test has started
 */
export async function startDeployment(name: string, environment: Readonly<Record<string, string>>): Promise<TestGateway> {
  const { folder, remove } = makeFolder()
  const file = deploymentFile(name)
  const read = (): Outcome<Prepared> => {
    const prepared = prepare(file, { ...process.env, ...environment })
    return prepared.ok ? { ok: true, value: onFreePorts(prepared.value, folder) } : prepared
  }
  return startPrepared(read, { folder, file, remove })
}

function onFreePorts(prepared: Prepared, folder: string): Prepared {
  const { config } = prepared
  const free = { host: '127.0.0.1', port: 0 }
  return {
    ...prepared,
    config: {
      ...config,
      listen: { ...config.listen, ...free },
      health: free,
      ...(config.admin === undefined ? {} : { admin: { ...config.admin, ...free } }),
      ownership: { ...config.ownership, store: `sqlite:${join(folder, 'ownership.db')}` },
    },
  }
}
