/**
 * Starts what deploy/compose.yaml says, as processes: with its commands, files, environment, host names, ports and health checks.
 * It runs in the namespaces of namespace.sh, and prints what a user would see as one line of JSON.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { parse } from 'yaml'
import { call, runInput } from '../../testing/support/client.ts'
import { startServer } from '../../testing/support/postgres-server.ts'
import { until } from '../../testing/support/until.ts'
import { ROOT } from '../suites/suites.ts'

export interface ComposeService {
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly healthcheck: { readonly test: readonly string[] }
}

/** How an image starts: ENTRYPOINT and CMD of Dockerfile and examples/Dockerfile, and the program of Prometheus. */
const ENTRY = {
  gateway: [process.execPath, '/app/dist/cli.js', 'serve'],
  runtime: [process.execPath],
  issuer: [process.execPath],
  prometheus: ['prometheus'],
} as const

/** The environment of the images. */
const IMAGE = { THREADWARDEN_CONFIG: '/etc/threadwarden/threadwarden.yaml', COPILOTKIT_TELEMETRY_DISABLED: 'true' }

const { services } = parse(readFileSync(`${ROOT}deploy/compose.yaml`, 'utf8'), { merge: true }) as {
  readonly services: Readonly<Record<keyof typeof ENTRY, ComposeService>>
}
const [data = ''] = process.argv.slice(2)
const here = (word: string): string =>
  word
    .replace(/^\/app\//, ROOT)
    .replace('=/prometheus', `=${data}`)
    .replace(/^node$/, process.execPath)

const password = readFileSync('/run/secrets/postgres-password', 'utf8').trim()
const server = await startServer({})
const owner = new Client({ host: '127.0.0.1', port: server.port, user: 'postgres', database: 'postgres' })
await owner.connect()
await owner.query(`CREATE ROLE threadwarden LOGIN PASSWORD '${password}'`)
await owner.query('CREATE DATABASE threadwarden OWNER threadwarden')
await owner.end()
// The server of the tests chooses its port.
const relay = createServer((socket) => {
  const to = connect(server.port, '127.0.0.1')
  socket.pipe(to).pipe(socket)
  for (const one of [socket, to]) one.on('error', () => [socket, to].forEach((end) => end.destroy()))
}).listen(5432, 'postgres')
await once(relay, 'listening')

const children = Object.entries(ENTRY).map(([name, entry]) => {
  const { command = [], environment = {} } = services[name as keyof typeof ENTRY]
  const [program = '', ...args] = [...entry, ...command].map(here)
  return spawn(program, args, {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ...IMAGE, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
})
const ended = Promise.race(
  children.map(async (child) => {
    await once(child, 'exit')
    throw new Error(`${child.spawnargs.join(' ')} ended`)
  }),
)
/** Not synchronously: the relay to PostgreSQL is in this process. */
const output = promisify(execFile)
const isHealthy = async (name: keyof typeof ENTRY): Promise<boolean> => {
  const [, program = '', ...args] = services[name].healthcheck.test.map(here)
  return output(program, args, { env: { PATH: process.env['PATH'], ...IMAGE } }).then(
    () => true,
    () => false,
  )
}

const GATEWAY = 'http://gateway:8080/api/copilotkit'
const signIn = async (user: string): Promise<string> => {
  const args = [`${ROOT}examples/issuer.ts`, 'token', '--issuer', 'http://issuer:4100', '--user', user]
  return (await output(process.execPath, args)).stdout.trim()
}

async function exchanges(): Promise<object> {
  // Debian's promtool is older than the command of the image's health check.
  for (const name of ['issuer', 'runtime', 'gateway'] as const) await until(() => isHealthy(name))
  const [alice, bob] = [await signIn('alice'), await signIn('bob')]
  const run = await call(`${GATEWAY}/agent/default/run`, { token: alice, body: runInput('t-1') })
  const read = (token?: string) => call(`${GATEWAY}/threads/t-1/messages`, token === undefined ? {} : { token })
  const prometheus = async (path: string): Promise<string> => (await call(`http://prometheus:9090/api/v1/${path}`)).text
  await until(async () => (await prometheus('targets')).includes('"health":"up"'))
  return {
    run: run.status,
    finished: run.text.includes('RUN_FINISHED'),
    alice: (await read(alice)).status,
    bob: (await read(bob)).status,
    nobody: (await read()).status,
    alerts: [...(await prometheus('rules')).matchAll(/"name":"(Threadwarden\w+)"/g)].length,
  }
}

try {
  process.stdout.write(`${JSON.stringify(await Promise.race([exchanges(), ended]))}\n`)
} finally {
  for (const child of children) child.kill('SIGKILL')
  relay.close()
  await server.remove()
}
process.exit()
