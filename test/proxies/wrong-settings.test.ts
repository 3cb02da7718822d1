/**
 * The doctor behind Debian's nginx, HAProxy and Caddy: each setting that breaks long conversations, long tokens or quiet streams is
 * found and named, and the files of deploy/proxies are fine. The minute of silence passes once for all three.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { AUTHORITY } from '../../testing/support/certificates.ts'
import { configFile, run, serving } from '../../testing/support/program.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { INFO, json, startUpstream, type Answering } from '../../testing/support/upstream.ts'
import { NAMES, startProxy, type Name } from './start-proxy.ts'

const TYPES = ['RUN_STARTED', 'TEXT_MESSAGE_START', 'RUN_FINISHED']

/** A run of three events, one by one. */
const answering: Answering = async (request, response) => {
  if (!request.target.endsWith('/run')) return json(INFO)(request, response)
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  for (const type of TYPES) {
    response.write(`data: ${JSON.stringify({ type })}\n\n`)
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
  response.end()
  return undefined
}

interface Finding {
  readonly check: string
  readonly level: string
  readonly message: string
  readonly remedy?: string
}

interface Examined {
  readonly code: number | null
  readonly of: (check: string) => Finding | undefined
}

type Examine = (name: Name, quiet: string, change?: (shipped: string) => string) => Promise<Examined>

async function scene(t: Test): Promise<Examine> {
  const upstream = await startUpstream(answering)
  t.teardown(() => upstream.close())
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const { file, folder } = configFile(t, {
    'upstream.url': upstream.url,
    'upstream.transport': 'multi-route',
    'authentication.issuers': signer.authentication.issuers,
    listen: { host: '127.0.0.1', port: 0, trustedProxies: ['127.0.0.1/32'] },
    // The comments of the gateway would break the silence that the time-outs are to notice.
    'streams.keepAlive': '0s',
  })
  const gateway = await serving(t, file)
  const address = new URL(String(gateway.listening['url'])).host
  const health = new URL(String(gateway.listening['health'])).port
  writeFileSync(join(folder, 'token'), signer.sign('alice'))
  writeFileSync(join(folder, 'authority.pem'), AUTHORITY)
  return async (name, quiet, change) => {
    const port = await startProxy(t, name, address, health, change)
    const ended = await run(
      t,
      [
        'doctor',
        '--json',
        '--config',
        file,
        '--url',
        `https://127.0.0.1:${port}/api/copilotkit`,
        '--token-file',
        join(folder, 'token'),
        '--run',
        'default',
        '--quiet',
        quiet,
      ],
      { environment: { NODE_EXTRA_CA_CERTS: join(folder, 'authority.pem') } },
    )
    const { findings } = JSON.parse(ended.stdout) as { readonly findings: readonly Finding[] }
    return { code: ended.code, of: (check) => findings.find((finding) => finding.check === check) }
  }
}

/** Replaces a part that has to be there. */
function changed(from: string, to: string): (shipped: string) => string {
  return (shipped) => {
    if (!shipped.includes(from)) throw new Error(`the shipped file has no ${from}`)
    return shipped.replace(from, to)
  }
}

interface Wrong {
  readonly name: Name
  readonly change: (shipped: string) => string
  /** How long the stream without events is to stay open. */
  readonly quiet?: string
  readonly check: string
  readonly says: RegExp
  readonly remedy: RegExp
  /** Another check that finds the same. */
  readonly also?: string
}

const WRONG: readonly Wrong[] = [
  {
    name: 'nginx',
    change: changed('client_max_body_size 64m', 'client_max_body_size 1m'),
    check: 'gateway.bodies',
    says: /refuses a body of 4MiB with 413/,
    remedy: /client_max_body_size/,
  },
  {
    name: 'caddy',
    change: changed('max_size 67108864', 'max_size 1000000'),
    check: 'gateway.bodies',
    says: /refuses a body of 4MiB with 502/,
    remedy: /Caddy: request_body max_size/,
  },
  {
    name: 'nginx',
    change: changed('large_client_header_buffers 4 16k', 'large_client_header_buffers 4 8k'),
    check: 'gateway.headers',
    says: /refuses headers of 15KiB with 4\d\d/,
    remedy: /large_client_header_buffers/,
  },
  {
    name: 'haproxy',
    change: changed('tune.bufsize 32768', 'tune.bufsize 16384'),
    check: 'gateway.headers',
    says: /refuses headers of 15KiB with 4\d\d/,
    remedy: /tune\.bufsize/,
  },
  {
    name: 'nginx',
    change: changed('proxy_buffering off;', 'proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;'),
    check: 'gateway.run',
    says: /events are delayed on the way/,
    remedy: /proxy_buffering off/,
  },
  {
    name: 'nginx',
    change: changed('proxy_buffering off;', 'proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;'),
    quiet: '20s',
    check: 'gateway.quiet',
    says: /holds back streams/,
    remedy: /proxy_buffering off/,
    also: 'gateway.run',
  },
  {
    name: 'nginx',
    change: changed('proxy_read_timeout 1h', 'proxy_read_timeout 3s'),
    quiet: '10s',
    check: 'gateway.quiet',
    says: /cuts a stream after 3/,
    remedy: /proxy_read_timeout/,
  },
  {
    name: 'haproxy',
    change: changed('timeout server 1h', 'timeout server 3s'),
    quiet: '10s',
    check: 'gateway.quiet',
    says: /cuts a stream after 3/,
    remedy: /timeout server/,
  },
  {
    name: 'caddy',
    change: changed('dial_timeout 5s', 'dial_timeout 5s\n\t\t\t\tread_timeout 3s'),
    quiet: '10s',
    check: 'gateway.quiet',
    says: /cuts a stream after [23]/,
    remedy: /read_timeout/,
  },
]

void test('a wrong setting of a proxy is a problem, and the remedy names it', async (t) => {
  const examine = await scene(t)
  for (const { name, change, quiet = '0s', check, says, remedy, also } of WRONG) {
    const { code, of } = await examine(name, quiet, change)
    const what = `${name}: ${check}`
    t.equal(code, 1, what)
    t.match(of(check), { level: 'problem', message: says, remedy }, what)
    const others = ['gateway.bodies', 'gateway.headers', 'gateway.run', 'gateway.authentication', 'gateway.caller'].filter(
      (one) => one !== check && one !== also,
    )
    for (const other of others) t.equal(of(other)?.level, 'ok', `${what}: ${other} is fine`)
  }
})

void test('the shipped files are fine, also for a stream that is quiet for a minute', async (t) => {
  const examine = await scene(t)
  await Promise.all(
    NAMES.map(async (name) => {
      const { of } = await examine(name, '61s')
      for (const check of [
        'gateway.bodies',
        'gateway.headers',
        'gateway.authentication',
        'gateway.caller',
        'gateway.run',
        'gateway.quiet',
      ])
        t.equal(of(check)?.level, 'ok', `${name}: ${check}: ${of(check)?.message}`)
      t.match(of('gateway.quiet')?.message, /^a stream without events stays open for 61 s, with at most 61 s of silence/)
    }),
  )
})
