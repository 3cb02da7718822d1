/** An empty folder into which the npm package is installed, as a user installs it. */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { freePort } from '../../testing/support/free-port.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ROOT } from '../docs/markdown.ts'

export const MODULES = join(ROOT, 'node_modules')

const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string }

interface Ended {
  readonly code: number
  readonly output: string
}

export interface Installation {
  readonly version: string
  /** Around everything; it goes with the test. */
  readonly folder: string
  readonly tarball: string
  /** The folder of the user. */
  readonly home: string
  /** The package in it, and its command. */
  readonly installed: string
  readonly program: string
  /** Packs the package in a folder of sources. */
  readonly pack: (t: Test, sources: string, ...options: readonly string[]) => Promise<void>
  /** Installs the tarball where npm finds no compiler, no Python and no program but Node and a shell. */
  readonly install: (t: Test, ...options: readonly string[]) => Promise<void>
  /** Runs the command of the package. */
  readonly threadwarden: (t: Test, ...args: readonly string[]) => Promise<string>
}

export function makeInstallation(t: Test): Installation {
  const { folder, remove } = makeFolder('on disk')
  t.teardown(remove)
  const home = join(folder, 'home')
  const [bin, installed] = [join(home, 'bin'), join(home, 'node_modules/threadwarden')]
  const { version } = PACKAGE
  const tarball = join(folder, `threadwarden-${version}.tgz`)
  const program = join(home, 'node_modules/.bin/threadwarden')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(home, 'package.json'), '{ "type": "module" }\n')
  return {
    ...{ version, folder, tarball, home, installed, program },
    async pack(test, sources, ...options) {
      await succeeds(test, sources, ['npm', 'pack', '--silent', '--pack-destination', folder, ...options])
      test.ok(existsSync(tarball))
    },
    async install(test, ...options) {
      const { output } = await command(home, ['sh', '-c', 'command -v npm && command -v sh && command -v env'])
      for (const file of output.trim().split('\n')) symlinkSync(file, join(bin, file.split('/').at(-1) ?? ''))
      const words = ['npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', ...options, tarball]
      await succeeds(test, home, words, bin)
    },
    threadwarden: (test, ...args) => succeeds(test, home, [program, ...args]),
  }
}

/** Copies what the package is built from, without what an earlier build left. */
export function copySources(sources: string): string {
  for (const name of readdirSync(ROOT)) {
    if (/^(?:src|policies|config|package\.json|tsconfig.*|README\.md|LICENSE|CHANGELOG\.md)$/.test(name)) {
      cpSync(join(ROOT, name), join(sources, name), { recursive: true })
    }
  }
  mkdirSync(join(sources, 'testing'))
  cpSync(join(ROOT, 'testing/package.json'), join(sources, 'testing/package.json'))
  symlinkSync(MODULES, join(sources, 'node_modules'))
  return sources
}

/** Runs a command. @param path where programs are found besides the Node of this process */
export async function command(cwd: string, words: readonly string[], path = process.env['PATH'] ?? ''): Promise<Ended> {
  const [file = '', ...args] = words
  const env = { ...process.env, PATH: [dirname(process.execPath), path].join(delimiter) }
  try {
    const { stdout, stderr } = await promisify(execFile)(file, args, { cwd, env, maxBuffer: 64 * 1024 * 1024 })
    return { code: 0, output: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { readonly code: number; readonly stdout: string; readonly stderr: string }
    return { code, output: `${stdout}${stderr}` }
  }
}

export async function succeeds(t: Test, cwd: string, words: readonly string[], path?: string): Promise<string> {
  const { code, output } = await command(cwd, words, path)
  t.equal(code, 0, `${words.join(' ')}\n${code === 0 ? '' : output}`)
  return output
}

/** Writes a configuration, on ports that no other gateway of this machine uses. */
export async function writeConfiguration(file: string, text: string): Promise<void> {
  const [listen, health] = [await freePort(), await freePort()]
  writeFileSync(file, text.replace('8080', String(listen)).replace('8081', String(health)).replaceAll('0.0.0.0', '127.0.0.1'))
}
