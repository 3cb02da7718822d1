/** The checks of scripts/pod-check.sh, which builds the images and starts this with the command of podman. */
import { createServer, connect, type Server as TcpServer } from 'node:net'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { stringify } from 'yaml'
import { startAgent } from '../../examples/agent.ts'
import { untilStopped } from '../../examples/command.ts'
import { makeExchanges, print, type Exchanges } from '../../examples/demo-exchanges.ts'
import { ORIGIN, SERVICE_HEADER } from '../../examples/demo-gateway.ts'
import { throughGateway } from '../../examples/demo-steps.ts'
import { forgedToken } from '../../examples/forged-token.ts'
import { startIssuer, type Issuer } from '../../examples/issuer.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { startServer } from '../../testing/support/postgres-server.ts'
import { loadService, type Told } from '../../testing/support/service.ts'
import { until } from '../../testing/support/until.ts'
import { makeChecks } from '../image/checks.ts'
import { IMAGES, makeVolumes, preStop, readOverlay, writePod, writeVolume, type Overlay } from './manifests.ts'
import { makePodman, NETWORK, type Podman } from './podman.ts'

const BASE = '/api/copilotkit'
const POLICY = readFileSync(fileURLToPath(new URL('../../policies/default.yaml', import.meta.url)), 'utf8')

const closers: (() => unknown)[] = []
/** The part of a test that loadService uses. */
const scope = { teardown: (close: () => unknown) => void closers.push(close) }

const { check, conclude } = makeChecks()

/** What all pods share: an issuer and an agent in this process, at the address of the host. */
interface World {
  readonly podman: Podman
  readonly folder: string
  readonly issuer: Issuer
  readonly agentUrl: string
  readonly tokens: Readonly<Record<'alice' | 'bob' | 'olga' | 'forged', string>>
}

/** Passes connections on; closes with the checks. */
async function startTcpRelay(
  host: string,
  port: number,
  target: { readonly host: string; readonly port: number },
): Promise<number> {
  const server: TcpServer = createServer((incoming) => {
    const outgoing = connect(target)
    incoming.pipe(outgoing).pipe(incoming)
    for (const [one, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const)
      one.on('error', () => other.destroy())
  })
  server.listen(port, host)
  await once(server, 'listening')
  closers.push(() => server.close())
  return (server.address() as { port: number }).port
}

async function prepare(command: readonly string[], folder: string): Promise<World> {
  const podman = makePodman(command)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  podman.run('pod', 'rm', '--force', '--all')
  podman.run('rm', '--force', '--all')
  podman.run('network', 'rm', '--force', NETWORK.name)
  podman.run('network', 'create', '--subnet', NETWORK.subnet, '--gateway', NETWORK.host, NETWORK.name)
  // Another pod of the cluster; with it, the network has its address here.
  const waits = ['--entrypoint', 'node', IMAGES.examples, '--eval', 'setInterval(() => {}, 1e9)']
  podman.run('run', '--detach', '--name', 'neighbour', '--network', NETWORK.name, ...waits)
  const issuer = await startIssuer({ host: NETWORK.host, port: 3000 })
  closers.push(() => issuer.close())
  // Agents fetch keys with https, or on loopback.
  const keys = await startTcpRelay('127.0.0.1', 0, { host: NETWORK.host, port: 3000 })
  const agent = await startAgent({
    host: NETWORK.host,
    issuer: issuer.issuer,
    audience: issuer.audience,
    jwksUri: `http://127.0.0.1:${keys}/jwks`,
  })
  closers.push(() => agent.close())
  const [alice, bob, olga] = await Promise.all([issuer.signIn('alice'), issuer.signIn('bob'), issuer.signIn('olga')])
  const tokens = { alice, bob, olga, forged: await forgedToken(alice) }
  return { podman, folder, issuer, agentUrl: agent.url, tokens }
}

/** The configuration of an overlay, with the issuer of the test, the origin of the demo, and without rates. */
function configurationFor({ configuration }: Overlay, { issuer }: World): string {
  const { ownership, limits } = configuration
  const postgres = ownership.postgres === undefined ? undefined : { ...ownership.postgres, tls: 'off' }
  return stringify({
    ...configuration,
    cors: { origins: [ORIGIN] },
    authentication: {
      issuers: { corp: { issuer: issuer.issuer, audiences: [issuer.audience], algorithms: ['RS256'], insecureHttp: true } },
    },
    ownership: { ...ownership, ...(postgres !== undefined && { postgres }) },
    limits: { ...limits, newThreads: 'off', requests: 'off' },
    policy: './policy.yaml',
  })
}

interface Pod {
  readonly name: string
  readonly folder: string
  readonly url: string
  readonly address: string
  readonly isReady: () => Promise<boolean>
}

async function startPod(
  world: World,
  overlay: Overlay,
  name: string,
  services: Readonly<Record<string, string>> = {},
): Promise<Pod> {
  const { podman, agentUrl } = world
  const folder = join(world.folder, name)
  mkdirSync(folder)
  makeVolumes(folder)
  writeVolume(join(folder, 'config'), { 'threadwarden.yaml': configurationFor(overlay, world), 'policy.yaml': POLICY })
  writeVolume(join(folder, 'secrets'), { 'database-password': 'unused', 'service-token': SERVICE_HEADER.value })
  const address = await podman.play(writePod(overlay.pod, { name, folder, services, agentUrl }), name)
  const isReady = async (): Promise<boolean> => {
    try {
      return (await fetch(`http://${address}:8081/readyz`)).ok
    } catch {
      return false
    }
  }
  return { name, folder, address, url: `http://${address}:8080`, isReady }
}

async function untilReady(world: World, pod: Pod): Promise<void> {
  const end = Date.now() + 60_000
  while (!(await pod.isReady())) {
    if (Date.now() > end) throw new Error(`${pod.name} is not ready:\n${world.podman.logs(`${pod.name}-threadwarden`)}`)
    await pause(100)
  }
}

/** The exchanges of the demo, except what only a process with the runtime in it can see. */
async function demoThrough(world: World, pods: readonly Pod[], what: string): Promise<void> {
  const [pod] = pods
  const score = { right: 0, wrong: 0 }
  const exchanges = makeExchanges(`${pod!.url}${BASE}`, [], new AbortController().signal, score)
  const blind: Exchanges = {
    ...exchanges,
    tell: async (line) => {
      const looksIntoRuntime = line.headers?.[SERVICE_HEADER.name] !== undefined
      const { expected: _expected, seen: _seen, ...rest } = line
      await exchanges.tell(looksIntoRuntime ? { ...rest, says: 'the runtime answers' } : line)
    },
  }
  const changes = (one: Pod): number =>
    world.podman.logs(`${one.name}-threadwarden`).split('"msg":"the new configuration is').length
  const changePolicy = async (change: (shipped: string) => string): Promise<void> => {
    for (const one of pods) {
      const before = changes(one)
      const configuration = readFileSync(join(one.folder, 'config/threadwarden.yaml'), 'utf8')
      writeVolume(join(one.folder, 'config'), { 'threadwarden.yaml': configuration, 'policy.yaml': change(POLICY) })
      await until(async () => (await pause(100), changes(one) !== before))
    }
  }
  await throughGateway(blind, world.tokens, { changePolicy } as Parameters<typeof throughGateway>[2])
  check(
    `${what}: all ${score.right + score.wrong} exchanges of the demo have the expected result`,
    score.wrong === 0,
    `${score.wrong} have not`,
  )
}

/** Whether a port takes connections, seen from here and from another pod. */
function isOpen({ podman }: World, address: string, port: number): readonly string[] {
  const program = `const s = require('node:net').connect(${port}, '${address}')
    s.on('connect', () => { console.log('open'); process.exit() }).on('error', (e) => { console.log(e.code); process.exit() })`
  return [podman.run('exec', 'neighbour', 'node', '--eval', program)]
}

/** Runs that take five seconds, one after the other, until stopped; each of them must end with its event. */
function keepStreams(urls: () => readonly string[], tokens: readonly string[]) {
  const outcomes: string[] = []
  let stopped = false
  let turn = 0
  const lanes = tokens.map(async (token) => {
    while (!stopped) {
      const all = urls()
      const url = all[turn++ % all.length]!
      try {
        const { status, text } = await call(`${url}${BASE}/agent/default/run`, {
          token,
          body: runInput(crypto.randomUUID(), 'slow'),
        })
        outcomes.push(status === 200 && text.includes('RUN_FINISHED') ? 'ended' : `${status} ${text.slice(-200)}`)
      } catch (error) {
        outcomes.push(`failed: ${String((error as Error).cause ?? error)}`)
      }
    }
  })
  return {
    outcomes,
    stop: async (): Promise<readonly string[]> => {
      stopped = true
      await Promise.all(lanes)
      return outcomes
    },
  }
}

async function sidecar(world: World): Promise<void> {
  const { podman, tokens } = world
  const overlay = readOverlay(join(world.folder, '../sidecar.yaml'))
  const pod = await startPod(world, overlay, 'sidecar')
  await untilReady(world, pod)
  await demoThrough(world, [pod], 'sidecar')

  const [gatewayPort] = isOpen(world, pod.address, 8080)
  const [runtimePort] = isOpen(world, pod.address, 4000)
  check(
    'sidecar: another pod reaches the gateway, and not the runtime',
    `${gatewayPort} ${runtimePort}` === 'open ECONNREFUSED',
    {
      gatewayPort,
      runtimePort,
    },
  )

  await killed(world, pod)
  await terminated(world, pod, overlay)
  const log = podman.logs(`${pod.name}-threadwarden`)
  const told = Object.values(tokens).filter((token) => log.includes(token))
  check('sidecar: the log of the gateway has the requests, and no token', log.includes('"msg":"request"') && told.length === 0)
  podman.run('pod', 'rm', '--force', pod.name)
}

/** kill -9 of the gateway under load. */
async function killed({ podman, tokens }: World, pod: Pod): Promise<void> {
  const container = `${pod.name}-threadwarden`
  const claims: { readonly thread: string; readonly owner: 'alice' | 'bob' }[] = []
  let stopped = false
  const lane = async (owner: 'alice' | 'bob'): Promise<void> => {
    while (!stopped) {
      const thread = crypto.randomUUID()
      try {
        const reply = await call(`${pod.url}${BASE}/agent/default/run`, { token: tokens[owner], body: runInput(thread) })
        if (reply.status === 200 && reply.text.includes('RUN_FINISHED')) claims.push({ thread, owner })
      } catch {
        await pause(50)
      }
    }
  }
  const lanes = [lane('alice'), lane('bob'), lane('alice'), lane('bob')]
  await until(() => claims.length >= 100)
  const before = podman.state(container)
  process.kill(before.pid, 'SIGKILL')
  await until(async () => (await pause(100), podman.state(container).restarts > before.restarts && (await pod.isReady())))
  const after = claims.length
  await until(() => claims.length >= after + 20)
  stopped = true
  await Promise.all(lanes)
  const lost: string[] = []
  for (const { thread, owner } of claims) {
    const other = owner === 'alice' ? 'bob' : 'alice'
    const read = (token: string): Promise<number> =>
      call(`${pod.url}${BASE}/threads/${thread}/messages`, { token }).then(({ status }) => status)
    const statuses = `${await read(tokens[owner])} ${await read(tokens[other])}`
    if (statuses !== '200 403') lost.push(`${thread}: ${statuses}`)
  }
  check(
    `sidecar: podman restarts the gateway after kill -9, and all ${claims.length} claims are kept`,
    lost.length === 0,
    lost.slice(0, 5),
  )
}

/** The end of a pod as the kubelet brings it about: all preStop hooks at once, the sidecar last. */
async function terminated({ podman, tokens }: World, pod: Pod, overlay: Overlay): Promise<void> {
  const streams = keepStreams(() => [pod.url], [tokens.alice])
  await pause(1000)
  const [gateway, runtime] = [`${pod.name}-threadwarden`, `${pod.name}-runtime`]
  const hook = preStop(overlay.pod, 'threadwarden')
  check('sidecar: the hook of the gateway begins its drain', hook.includes("process.kill(1, 'SIGTERM')"), hook)
  const stopping = streams.stop()
  // podman would restart a gateway that its own hook ends, so SIGTERM comes from outside.
  const grace = String(overlay.pod['terminationGracePeriodSeconds'] ?? 30)
  const ended = podman.start('stop', '--time', grace, gateway)
  await podman.start('exec', runtime, ...preStop(overlay.pod, 'runtime'))
  check(
    'sidecar: the hook of the runtime waits until the gateway has drained',
    (await stopping).every((one) => one === 'ended'),
    streams.outcomes,
  )
  await podman.start('stop', '--time', grace, runtime)
  await ended
  check('sidecar: the gateway ends with exit code 0', podman.state(gateway).exitCode === 0, podman.state(gateway))
}

/** A pod for a person, until a signal. */
async function stay(world: World): Promise<void> {
  const pod = await startPod(world, readOverlay(join(world.folder, '../sidecar.yaml')), 'sidecar')
  await untilReady(world, pod)
  const inside = `nsenter --net --target ${process.pid} curl --silent`
  print(`
The pod "sidecar" is ready. Ctrl+C ends it. Its files are in ${pod.folder}. As root, in another terminal:

TOKEN=${world.tokens.alice}
${inside} --header "authorization: Bearer $TOKEN" ${pod.url}${BASE}/info
${inside} http://${pod.address}:8081/readyz
`)
  await untilStopped({ close: () => Promise.resolve() })
}

async function standalone(world: World): Promise<void> {
  const { podman, tokens } = world
  const overlay = readOverlay(join(world.folder, '../standalone.yaml'))
  const runtime = await startRuntimePod(world)
  const postgres = await startServer({})
  closers.push(() => postgres.remove())
  await startTcpRelay(NETWORK.host, 5432, { host: '127.0.0.1', port: postgres.port })
  await makeDatabase(postgres.port)
  const services = { 'chat-runtime': runtime, postgres: NETWORK.host }
  const start = async (name: string): Promise<Pod> => {
    const pod = await startPod(world, overlay, name, services)
    await untilReady(world, pod)
    return pod
  }
  let replicas = [await start('standalone-1'), await start('standalone-2')]
  await demoThrough(world, replicas, 'standalone')

  const people = [tokens.alice, tokens.bob, tokens.olga, tokens.alice, tokens.bob, tokens.olga]
  const service = loadService(scope, replicas[0]!.url, people)
  const endpoints = (): readonly string[] => replicas.map(({ url }) => url)
  service.behind(...endpoints())
  const streams = keepStreams(endpoints, [tokens.alice, tokens.bob, tokens.olga])
  await service.answered(60)
  for (const [at, old] of [...replicas].entries()) {
    // maxUnavailable: 0, maxSurge: 1
    const fresh = await start(`standalone-${at + 3}`)
    replicas = [...replicas, fresh]
    service.behind(...endpoints())
    await service.answered(30)
    const ended = podman.start('stop', '--time', String(overlay.pod['terminationGracePeriodSeconds']), `${old.name}-threadwarden`)
    // The endpoints follow readiness.
    await until(async () => !(await old.isReady()))
    replicas = replicas.filter((one) => one !== old)
    service.behind(...endpoints())
    await ended
    check(`standalone: ${old.name} drains and ends with exit code 0`, podman.state(`${old.name}-threadwarden`).exitCode === 0)
  }
  await service.answered(60)
  const told: Told = await service.stop()
  const outcomes = await streams.stop()
  check(
    `standalone: none of ${Object.values(told).reduce((a, b) => a + b, 0)} requests fails while both gateways are replaced`,
    Object.keys(told).join() === '200',
    told,
  )
  check(
    `standalone: all ${outcomes.length} streams end with their event`,
    outcomes.length > 3 && outcomes.every((one) => one === 'ended'),
    outcomes,
  )
}

async function startRuntimePod(world: World): Promise<string> {
  const { pod } = readOverlay(join(world.folder, '../runtime.yaml'))
  const folder = join(world.folder, 'runtime')
  mkdirSync(folder)
  return world.podman.play(writePod(pod, { name: 'chat-runtime', folder, agentUrl: world.agentUrl }), 'chat-runtime')
}

async function makeDatabase(port: number): Promise<void> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' })
  await client.connect()
  await client.query('CREATE ROLE threadwarden LOGIN')
  await client.query('CREATE DATABASE threadwarden OWNER threadwarden')
  await client.end()
}

const folder = join(process.env['THREADWARDEN_PODS'] ?? '', 'pods')
try {
  const world = await prepare(process.argv.slice(2), folder)
  if (process.env['THREADWARDEN_STAY'] === 'yes') await stay(world)
  else {
    await sidecar(world)
    await standalone(world)
  }
} catch (error) {
  check('the checks run to their end', false, (error as Error).stack)
} finally {
  for (const close of closers.reverse()) await close()
}
conclude()
