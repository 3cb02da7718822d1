/**
 * The files of deploy/proxies with Debian's nginx, HAProxy and Caddy, in front of a gateway in a process of its own: large bodies,
 * quiet streams, addresses, disconnects and targets. The two minutes of silence pass once for all three.
 */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect } from 'node:tls'
import { test } from 'tap'
import { AUTHORITY } from '../../testing/support/certificates.ts'
import { runInput } from '../../testing/support/client.ts'
import { configFile, serving } from '../../testing/support/program.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { deferred, until } from '../../testing/support/until.ts'
import { startUpstream, type Answering } from '../../testing/support/upstream.ts'
import { NAMES, startProxy, type Name } from './start-proxy.ts'
import { TARGETS } from './targets.ts'

interface Ask {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

async function open(port: number, { path, headers = {}, body }: Ask): Promise<IncomingMessage> {
  const asking = request({
    host: '127.0.0.1',
    port,
    path: `/api/copilotkit${path}`,
    method: body === undefined ? 'GET' : 'POST',
    // Not the address of the proxy, so that the log shows whose it is.
    localAddress: '127.0.0.2',
    ca: AUTHORITY,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    agent: false,
  })
  asking.end(body)
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  return response
}

const STARTED = 'data: {"type":"RUN_STARTED"}\n\n'
const FINISHED = 'data: {"type":"RUN_FINISHED"}\n\n'

/** What a run does, by its thread. */
const BEHAVIOUR: Readonly<Record<string, (write: (chunk: string) => void, end: () => void) => unknown>> = {
  large: (write, end) => {
    write(FINISHED)
    end()
  },
  quiet: async (write, end) => {
    write(STARTED)
    await new Promise((resolve) => setTimeout(resolve, 121_000))
    write(FINISHED)
    end()
  },
  left: (write) => write(STARTED),
}

void test('with each proxy: a 30 MiB run, a stream that is quiet for two minutes, true addresses and disconnects', async (t) => {
  const released = new Map(NAMES.map((name) => [`${name}-first`, deferred()]))
  const answering: Answering = async ({ json, target }, response) => {
    if (!target.endsWith('/run')) return void response.setHeader('content-type', 'application/json').end('{}')
    const { threadId } = json as { readonly threadId: string }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const first = released.get(threadId)
    if (first !== undefined) {
      response.write(STARTED)
      await first.promise
      return void response.end(FINISHED)
    }
    await BEHAVIOUR[threadId.split('-')[1] ?? '']?.(
      (chunk) => void response.write(chunk),
      () => response.end(),
    )
  }
  const upstream = await startUpstream(answering)
  t.teardown(() => upstream.close())
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const { file } = configFile(t, {
    'upstream.url': upstream.url,
    'upstream.transport': 'multi-route',
    'authentication.issuers': signer.authentication.issuers,
    listen: { host: '127.0.0.1', port: 0, trustedProxies: ['127.0.0.1/32'] },
    // Otherwise the gateway would break the silence.
    'streams.keepAlive': '0s',
  })
  const gateway = await serving(t, file)
  const address = new URL(String(gateway.listening['url'])).host
  const health = new URL(String(gateway.listening['health'])).port
  const authorization = `Bearer ${signer.sign('alice')}`
  const run = (threadId: string, content = 'hello'): Ask => ({
    path: '/agent/default/run',
    headers: { authorization, 'x-forwarded-for': '6.6.6.6', forwarded: 'for=6.6.6.6' },
    body: JSON.stringify(runInput(threadId, content)),
  })
  const ports = new Map<Name, number>()
  for (const name of NAMES) ports.set(name, await startProxy(t, name, address, health))

  const check = async (name: Name): Promise<void> => {
    const port = ports.get(name)!
    const quiet = await open(port, run(`${name}-quiet`))
    t.equal(quiet.statusCode, 200, name)
    const whole = text(quiet)

    const early = await open(port, run(`${name}-first`))
    const [event] = (await once(early.setEncoding('utf8'), 'data')) as [string]
    t.equal(event, STARTED, `${name}: the first event arrives while the upstream waits`)
    released.get(`${name}-first`)!.resolve()
    t.equal(await text(early), FINISHED, name)

    const left = await open(port, run(`${name}-left`))
    await once(left, 'data')
    left.destroy()
    const its = upstream.requests.find(({ json }) => (json as { threadId?: string }).threadId === `${name}-left`)
    await until(() => its?.left() === true)

    const content = 'x'.repeat(30 * 1024 * 1024)
    const large = await open(port, run(`${name}-large`, content))
    t.equal(large.statusCode, 200, `${name}: 30 MiB`)
    t.equal(await text(large), FINISHED, name)

    const line = await gateway.line(({ thread, msg }) => thread === `${name}-first` && msg === 'request')
    t.equal(line['client'], '127.0.0.2', `${name}: the address of the caller, not the one that it wrote`)
    for (const path of ['/livez', '/readyz', '/metrics']) {
      const answer = await open(port, { path: `/../..${path}` })
      t.ok([400, 404].includes(answer.statusCode ?? 0), `${name}: ${path} is not public`)
      answer.resume()
    }
    t.equal(await whole, STARTED + FINISHED, `${name}: two minutes of silence`)
  }
  await Promise.all(NAMES.map(check))
  const bodies = upstream.requests.filter(({ body }) => body.length > 30 * 1024 * 1024)
  t.equal(bodies.length, NAMES.length)
})

/** A proxy may reset a connection on which it does not read on. */
async function answerOf(socket: Socket): Promise<string> {
  let answer = ''
  socket.setEncoding('latin1').on('data', (piece: string) => void (answer += piece))
  socket.on('error', () => {})
  await once(socket, 'close')
  return answer
}

void test('targets pass unchanged, or not at all', async (t) => {
  let heard = ''
  const recorder = createServer((socket) => {
    socket.setEncoding('latin1').on('data', (piece: string) => {
      heard += piece
      if (heard.endsWith('\r\n\r\n')) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
    })
    socket.on('error', () => {})
  }).listen(0, '127.0.0.1')
  await once(recorder, 'listening')
  t.teardown(() => recorder.close())
  const { port } = recorder.address() as AddressInfo
  const quietHealth = createServer((socket) => {
    socket.on('error', () => {})
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
  }).listen(0, '127.0.0.1')
  await once(quietHealth, 'listening')
  t.teardown(() => quietHealth.close())

  for (const name of NAMES) {
    const proxy = await startProxy(t, name, `127.0.0.1:${port}`, String((quietHealth.address() as AddressInfo).port))
    for (const [target, passedBy] of TARGETS) {
      heard = ''
      const socket = connect({ host: '127.0.0.1', port: proxy, ca: AUTHORITY })
      socket.write(
        `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${proxy}\r\nX-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nConnection: close\r\n\r\n`,
      )
      const status = (await answerOf(socket)).split(' ')[1]
      t.equal(heard !== '', passedBy.split(' ').includes(name), `${name}: ${target}`)
      if (heard === '') {
        t.match(status, /^(?:400|404)$/, `${name} refuses ${target}`)
        continue
      }
      const got = heard.split(' ')[1]
      // The scheme and the host are not part of what is routed. Caddy encodes what no URI may contain.
      const expected = target.replace('http://127.0.0.1', '')
      t.equal(got, name === 'caddy' ? expected.replaceAll('\\', '%5C').replace('#', '%23') : expected, `${name} passes ${target}`)
      t.match(heard, /\r\nx-forwarded-for: 127\.0\.0\.1\r\n/i, name)
      t.notMatch(heard, /6\.6\.6\.6/, name)
    }
  }
})
