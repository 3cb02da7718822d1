/** Where runtimes are installed, and how another version is. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { RuntimeContract } from './facts.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/runtimes')
const PACKAGE = '@copilotkit/runtime'

/** By the version of the package that is there; the first one counts. */
const placesOf = (version: string): readonly string[] => [
  join(ROOT, 'examples/node_modules', PACKAGE),
  join(ROOT, 'examples/runtime-1.54/node_modules/@copilotkitnext/runtime'),
  join(ROOT, 'examples/runtimes/node_modules', `runtime-${version}`),
  join(CACHE, version, 'node_modules', PACKAGE),
]

/** The folder of its package; null if it is not installed. */
export function folderOf(version: string): string | null {
  return placesOf(version).find((folder) => versionIn(folder) === version) ?? null
}

function versionIn(folder: string): string | null {
  const file = join(folder, 'package.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version : null
}

/** The message says what to do. */
export class NoContract extends Error {}

/**
 * Installs a version below `node_modules/.cache`, and shows what npm says.
 * @returns the folder of its package
 * @throws NoContract
 */
export async function install(version: string): Promise<string> {
  const target = join(CACHE, version)
  const folder = `${target}.${process.pid}`
  mkdirSync(folder, { recursive: true })
  try {
    const { overrides } = JSON.parse(readFileSync(join(ROOT, 'examples/runtimes/package.json'), 'utf8')) as {
      readonly overrides: object
    }
    const manifest = { private: true, type: 'module', dependencies: { [PACKAGE]: version }, overrides }
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
    const options = ['--legacy-peer-deps', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
    const npm = spawn('npm', ['install', ...options], { cwd: folder, stdio: ['ignore', process.stderr, 'inherit'] })
    const [status] = (await once(npm, 'close')) as [number | null]
    if (status !== 0) {
      throw new NoContract(
        `${PACKAGE} ${version} could not be installed: is the npm registry reachable, and does npm view ${PACKAGE} versions have it?`,
      )
    }
    rmSync(target, { recursive: true, force: true })
    renameSync(folder, target)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return join(target, 'node_modules', PACKAGE)
}

/** Null if the registry does not answer. */
export async function newestRelease(): Promise<string | null> {
  const npm = spawn('npm', ['view', PACKAGE, 'version', '--fetch-retries=0', '--fetch-timeout=15000'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [output] = await Promise.all([text(npm.stdout), once(npm, 'close')])
  return npm.exitCode === 0 && output.trim() !== '' ? output.trim() : null
}

const PROBE = fileURLToPath(new URL('probe.ts', import.meta.url))
const LONGEST_MS = 180_000

/** @throws NoContract if the runtime cannot be asked */
export async function askContract(folder: string): Promise<RuntimeContract> {
  const probe = spawn(process.execPath, [PROBE, folder], { stdio: ['ignore', 'pipe', 'pipe'], timeout: LONGEST_MS })
  const closed = once(probe, 'close')
  const [output, faults] = await Promise.all([text(probe.stdout), text(probe.stderr)])
  await closed
  if (probe.exitCode !== 0) {
    throw new NoContract(
      `the runtime in ${folder} could not be asked, so that testing/contract/probe.ts has to be adapted to it:\n${faults}`,
    )
  }
  return JSON.parse(output) as RuntimeContract
}
