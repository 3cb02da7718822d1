/** The examples of Express, Hono and Next.js as processes, with the package as npm packs and installs it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { type Issuer, startIssuer } from '../../examples/issuer.ts'
import { walk } from '../../examples/sign-in.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'
import { ROOT } from '../docs/markdown.ts'
import { copySources, makeInstallation, succeeds } from '../package/installation.ts'

export type Person = 'alice' | 'bob'

export interface App {
  readonly name: string
  readonly origin: string
  /** The header by which the application knows a user. */
  readonly as: Readonly<Record<Person, Readonly<Record<string, string>>>>
  /** What the gateway in the process has logged. */
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  /** All other output. */
  readonly output: readonly string[]
  /** Sends a SIGTERM, and gives the exit code and the signal. */
  readonly end: () => Promise<readonly unknown[]>
}

/** What starts one of the applications. */
export type Start = (t: Test, issuer: Issuer) => Promise<App>

const NEXT = join(ROOT, 'examples/next')

/** Packs the package and installs it into the Next.js example, as its users do, and builds that. */
export async function installPackage(t: Test): Promise<void> {
  const { folder, tarball, pack } = makeInstallation(t)
  await pack(t, copySources(join(folder, 'sources')))
  const options = ['--no-save', '--no-package-lock', '--legacy-peer-deps', '--ignore-scripts', '--prefer-offline']
  await succeeds(t, NEXT, ['npm', 'install', '--no-audit', '--no-fund', '--loglevel=error', ...options, tarball])
}

export async function buildNext(t: Test): Promise<void> {
  process.env['NEXT_TELEMETRY_DISABLED'] = '1'
  await succeeds(t, NEXT, ['npm', 'run', '--silent', 'build'])
}

/** One of the programs beside the ready configuration, in a folder that has the package of npm in place of the sources. */
export function program(file: 'express.ts' | 'hono.ts'): Start {
  return async (t, issuer) => {
    const { folder, remove } = makeFolder()
    t.teardown(remove)
    const copied = join(folder, 'examples')
    cpSync(join(ROOT, 'examples'), copied, {
      recursive: true,
      filter: (path) => !/node_modules|\/examples\/(?:next|web)/.test(path),
    })
    symlinkSync(join(ROOT, 'examples/node_modules'), join(copied, 'node_modules'))
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(join(NEXT, 'node_modules/threadwarden'), join(folder, 'node_modules/threadwarden'))
    const running = run(t, [join(copied, 'deployments/in-process', file)], folder, {
      ...{ ISSUER_URL: issuer.issuer, THREADWARDEN_DATA: folder, PORT: '0' },
    })
    await until(() => running.output.some((line) => line.startsWith('http://')))
    const [alice, bob] = [await issuer.signIn('alice'), await issuer.signIn('bob')]
    return {
      name: file,
      origin: running.output.find((line) => line.startsWith('http://')) ?? '',
      as: { alice: { authorization: `Bearer ${alice}` }, bob: { authorization: `Bearer ${bob}` } },
      ...running,
    }
  }
}

export const next: Start = async (t, issuer) => {
  const { origin, ...running } = await runNext(t, { ISSUER_URL: issuer.issuer })
  await until(() => running.lines.some(({ msg }) => msg === 'the upstream answers'))
  await until(() => running.output.some((line) => line.includes('Ready')))
  const [alice, bob] = [await session(origin, 'alice'), await session(origin, 'bob')]
  return { name: 'Next.js', origin, as: { alice: { cookie: alice }, bob: { cookie: bob } }, ...running }
}

export async function runNext(t: Test, environment: NodeJS.ProcessEnv) {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const port = await freePort()
  // Next.js takes 127.0.0.1 for localhost in the URL of a request, from which Auth.js makes the callback.
  const origin = `http://localhost:${port}`
  const words = [join(NEXT, 'node_modules/next/dist/bin/next'), 'start', '-H', '127.0.0.1', '-p', String(port)]
  const running = run(t, words, NEXT, {
    ...{ THREADWARDEN_DATA: folder, AUTH_URL: origin, AUTH_SECRET: 'x'.repeat(40) },
    ...{ NEXT_TELEMETRY_DISABLED: '1', COPILOTKIT_TELEMETRY_DISABLED: 'true', ...environment },
  })
  return { origin, ...running }
}

/** Starts Node with a program, which ends with the test. */
function run(t: Test, words: readonly string[], cwd: string, environment: NodeJS.ProcessEnv) {
  const child: ChildProcess = spawn(process.execPath, words, {
    cwd,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close')
  const [lines, output]: [Record<string, unknown>[], string[]] = [[], []]
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue
    createInterface({ input: stream }).on('line', (line) => {
      if (line.startsWith('{"level"')) lines.push(JSON.parse(line) as Record<string, unknown>)
      else output.push(line)
    })
  }
  t.teardown(async () => {
    child.kill('SIGKILL')
    await closed
    if (!t.passing()) t.comment([...output, ...lines.slice(-20).map((line) => JSON.stringify(line))].join('\n'))
  })
  return {
    lines,
    output,
    closed,
    end: () => {
      child.kill('SIGTERM')
      return closed
    },
  }
}

/** Signs somebody in by the pages of Auth.js and of the issuer; gives the cookies of the session. */
async function session(origin: string, person: Person): Promise<string> {
  const jar = new Map<string, string>()
  const ask = async (url: string | URL, body?: URLSearchParams): Promise<Response> => {
    const cookie = Array.from(jar, ([name, value]) => `${name}=${value}`).join('; ')
    const post = body === undefined ? {} : { method: 'POST', body }
    const response = await fetch(url, { redirect: 'manual', headers: { cookie }, ...post })
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';')
      jar.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1))
    }
    return response
  }
  const { csrfToken } = (await (await ask(`${origin}/api/auth/csrf`)).json()) as { readonly csrfToken: string }
  const form = new URLSearchParams({ csrfToken, callbackUrl: origin })
  const start = (await ask(`${origin}/api/auth/signin/corp`, form)).headers.get('location') ?? ''
  await ask(await walk(new URL(start), person, (url) => url.startsWith(origin)))
  return `authjs.session-token=${jar.get('authjs.session-token')}`
}

/** An issuer for all applications of a test. */
export async function issuerOf(t: Test): Promise<Issuer> {
  const issuer = await startIssuer()
  t.teardown(() => issuer.close())
  return issuer
}
