/** The checks of scripts/compose-check.sh, which builds the images and starts this with the command of podman. */
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { call, runInput } from '../../testing/support/client.ts'
import { until } from '../../testing/support/until.ts'
import { makeChecks } from '../image/checks.ts'
import { makePodman, type Podman } from '../pods/podman.ts'

const SERVICES = ['gateway', 'runtime', 'issuer', 'postgres', 'prometheus'] as const
type Service = (typeof SERVICES)[number]
/** With what each container listens on. */
const ADDRESSES = ['gateway:8080', 'gateway:8081', 'runtime:4000', 'issuer:4100', 'postgres:5432', 'prometheus:9090'] as const
/** docker-compose 1.29 names containers so. */
const nameOf = (service: Service): string => `deploy_${service}_1`

const GATEWAY = 'http://127.0.0.1:8080/api/copilotkit'
const PROMETHEUS = 'http://127.0.0.1:9090/api/v1'

const { check, conclude } = makeChecks()
const output = promisify(execFile)

type Compose = (...args: readonly string[]) => Promise<string>

/** A copy of the folder deploy, prepared as docs/how-to/deploy/compose.md says it. */
function prepare(folder: string): string {
  const deploy = join(folder, 'deploy')
  rmSync(folder, { recursive: true, force: true })
  cpSync(fileURLToPath(new URL('../../deploy', import.meta.url)), deploy, { recursive: true })
  mkdirSync(join(deploy, 'compose/secrets'), { mode: 0o700 })
  writeFileSync(join(deploy, 'compose/secrets/postgres-password'), `${randomBytes(24).toString('hex')}\n`)
  chmodSync(join(deploy, 'compose/secrets/postgres-password'), 0o644)
  // The machine may allow less than the Compose file asks for.
  writeFileSync(join(deploy, 'limits.yaml'), 'services: { gateway: { ulimits: { nofile: 4096, nproc: 4096 } } }\n')
  return deploy
}

/** Runs the health checks as Docker does, until stopped. */
function keepHealthChecks(podman: Podman): () => Promise<void> {
  let stopped = false
  const lane = async (service: Service): Promise<void> => {
    while (!stopped) {
      // It fails while there is no such container, or the check fails: podman has then written that down.
      await podman.start('healthcheck', 'run', nameOf(service)).catch(() => {})
      await pause(500)
    }
  }
  const lanes = SERVICES.map(lane)
  return async () => {
    stopped = true
    await Promise.all(lanes)
  }
}

const inspected = (podman: Podman, service: Service, format: string): string =>
  podman.run('inspect', '--type', 'container', '--format', format, nameOf(service))

async function untilHealthy(podman: Podman): Promise<void> {
  const end = Date.now() + 120_000
  const ailing = (): readonly Service[] =>
    SERVICES.filter((service) => inspected(podman, service, '{{.State.Health.Status}}') !== 'healthy')
  for (let left = ailing(); left.length > 0; left = ailing()) {
    if (Date.now() > end) {
      const told = left.map(
        (service) => `${service}: ${inspected(podman, service, '{{json .State.Health}}')}\n${podman.logs(nameOf(service))}`,
      )
      throw new Error(`not healthy: ${told.join('\n')}`)
    }
    await pause(500)
  }
}

/** How a container sees an address: `open`, or the code of the error. */
function reach(podman: Podman, from: Service, address: string): string {
  const [host = '', port = ''] = address.split(':')
  if (from === 'gateway' || from === 'runtime' || from === 'issuer') {
    const program = `const s = require('node:net').connect({ host: '${host}', port: ${port}, timeout: 2000 })
      const end = (word) => { console.log(word); process.exit() }
      s.on('connect', () => end('open')).on('error', () => end('closed')).on('timeout', () => end('closed'))`
    return podman.run('exec', nameOf(from), 'node', '--eval', program)
  }
  const program = `if timeout 2 bash -c '</dev/tcp/${host}/${port}' 2>/dev/null; then echo open; else echo closed; fi`
  return podman.run('exec', nameOf(from), 'bash', '-c', program)
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  return Promise.race([once(socket, 'connect').then(() => true), pause(2000, false)])
    .catch(() => false)
    .finally(() => socket.destroy())
}

async function started(podman: Podman): Promise<void> {
  check('every container is healthy', true)
  for (const service of SERVICES) {
    const { pid } = podman.state(nameOf(service))
    const [, capabilities] = /^CapBnd:\t(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    const [, user] = /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    const root = readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .find((words) => words[4] === '/')?.[5]
    check(
      `${service}: not root, no capabilities, a read-only root file system`,
      user !== '0' && capabilities === '0000000000000000' && root?.startsWith('ro') === true,
      { user, capabilities, root },
    )
    const told = inspected(podman, service, '{{json .Config.Env}}')
    const password = readFileSync(join(deploy, 'compose/secrets/postgres-password'), 'utf8').trim()
    check(`${service}: the password is not in its environment`, !told.includes(password), told)
  }
}

/** Which addresses each service must reach, and no others. */
const REACHES: Readonly<Record<Service, readonly string[]>> = {
  gateway: ADDRESSES,
  runtime: ['gateway:8080', 'gateway:8081', 'runtime:4000'],
  issuer: ['gateway:8080', 'gateway:8081', 'issuer:4100'],
  postgres: ['gateway:8080', 'gateway:8081', 'postgres:5432'],
  prometheus: ['gateway:8080', 'gateway:8081', 'prometheus:9090'],
}

async function networks(podman: Podman): Promise<void> {
  for (const service of SERVICES) {
    const open = ADDRESSES.filter((address) => reach(podman, service, address) === 'open')
    check(`${service} reaches ${REACHES[service].join(', ')} and nothing else`, open.join() === REACHES[service].join(), open)
  }
  const ports = [4000, 4100, 5432, 8080, 8081, 9090]
  const open: number[] = []
  for (const port of ports) if (await isOpen(port)) open.push(port)
  check('this machine reaches the gateway and Prometheus, and no other port', open.join() === '8080,9090', open)
}

/** As docs/how-to/deploy/compose.md has it. */
async function signIn(compose: Compose, user: string): Promise<string> {
  const words = ['node', 'examples/issuer.ts', 'token', '--issuer', 'http://issuer:4100', '--user', user]
  return (await compose('exec', '-T', 'issuer', ...words)).trim()
}

async function used(compose: Compose): Promise<void> {
  const [alice, bob] = [await signIn(compose, 'alice'), await signIn(compose, 'bob')]
  const run = await call(`${GATEWAY}/agent/default/run`, { token: alice, body: runInput('t-1') })
  check('alice runs the agent', run.status === 200 && run.text.includes('RUN_FINISHED'), run)
  const read = (token?: string): Promise<{ status: number }> =>
    call(`${GATEWAY}/threads/t-1/messages`, token === undefined ? {} : { token })
  const statuses = `${(await read(alice)).status} ${(await read(bob)).status} ${(await read()).status}`
  check('she reads the thread; bob, and a caller without a token, do not', statuses === '200 403 401', statuses)
  const { text } = await call(`${PROMETHEUS}/rules`)
  const wanted = readFileSync(join(deploy, 'observability/threadwarden.rules.yml'), 'utf8').match(/^ +- alert: /gm)?.length
  check('Prometheus has every alert rule', [...text.matchAll(/"name":"Threadwarden/g)].length === wanted, text)
  await until(async () => (await pause(200), (await call(`${PROMETHEUS}/targets`)).text.includes('"health":"up"')))
  check('Prometheus reads the metrics of the gateway', true)
}

async function replaced(podman: Podman, compose: Compose): Promise<void> {
  await compose('stop', 'gateway')
  check('the gateway ends with exit code 0', podman.state(nameOf('gateway')).exitCode === 0, podman.logs(nameOf('gateway')))
  await compose('down')
  await compose('up', '-d', '--no-build')
  await untilHealthy(podman)
  const { status } = await call(`${GATEWAY}/agent/default/run`, { token: await signIn(compose, 'bob'), body: runInput('t-1') })
  check('after all containers were replaced, the thread still belongs to alice', status === 403, status)
}

const folder = process.env['THREADWARDEN_COMPOSE'] ?? ''
const deploy = prepare(folder)
const [program = '', ...options] = process.argv.slice(2)
const podman = makePodman([program, ...options])
const socket = join(folder, 'podman.sock')
const service = spawn(program, [...options, 'system', 'service', '--time', '0', `unix://${socket}`], {
  stdio: 'ignore',
})
await until(() => existsSync(socket))
const compose: Compose = async (...args) => {
  const files = ['-f', join(deploy, 'compose.yaml'), '-f', join(deploy, 'limits.yaml')]
  const env = { ...process.env, DOCKER_HOST: `unix://${socket}`, COMPOSE_HTTP_TIMEOUT: '300' }
  return (await output('docker-compose', [...files, ...args], { env, cwd: deploy })).stdout
}
const stopHealthChecks = keepHealthChecks(podman)
try {
  await compose('up', '-d', '--no-build')
  await untilHealthy(podman)
  await started(podman)
  await networks(podman)
  await used(compose)
  await replaced(podman, compose)
} catch (error) {
  check('the checks run to their end', false, (error as Error).stack)
} finally {
  await stopHealthChecks()
  await compose('down', '--volumes').catch(() => {})
  service.kill('SIGKILL')
}
conclude()
