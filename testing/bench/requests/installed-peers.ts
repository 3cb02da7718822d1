/** The rows that are programs of the system: they are measured where they are installed. */
import { spawnSync } from 'node:child_process'
import { connect } from 'node:net'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { startProgram } from '../processes.ts'
import type { Proxy, Row, Setting } from './row.ts'

interface Tool {
  readonly name: string
  readonly title: string
  readonly program: string
  /** @returns the text of its configuration file */
  readonly configuration: (port: number, setting: Setting) => string
  /** @returns its arguments; it stays in the foreground */
  readonly args: (file: string, folder: string) => readonly string[]
}

/** How often it is looked whether a program listens, in milliseconds, and for how many times. */
const LOOK = { every: 20, times: 500 } as const

/** As many connections as the streams need, with those to the upstream, and some. */
const spare = (connections: number): number => 2 * connections + 200

const NGINX: Tool = {
  name: 'nginx',
  title: 'nginx, passing through',
  program: 'nginx',
  args: (file, folder) => ['-p', folder, '-c', file],
  configuration: (port, { upstreamPort, connections }) => `
worker_processes 1; daemon off; pid nginx.pid; error_log nginx.err;
events { worker_connections ${spare(connections)}; }
http {
  access_log off; keepalive_requests 1000000000; client_max_body_size 20m; client_body_buffer_size 2m;
  client_body_temp_path cb; proxy_temp_path pt; fastcgi_temp_path ft; uwsgi_temp_path ut; scgi_temp_path st;
  upstream u { server 127.0.0.1:${upstreamPort}; keepalive ${connections}; keepalive_requests 1000000000; }
  server { listen 127.0.0.1:${port} backlog=4096;
    location / { proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }
  }
}
`,
}

const HAPROXY: Tool = {
  name: 'haproxy',
  title: 'HAProxy, passing through',
  program: 'haproxy',
  args: (file) => ['-f', file],
  configuration: (port, setting) => haproxyConfiguration(port, setting, ''),
}

const HAPROXY_JWT: Tool = {
  ...HAPROXY,
  name: 'haproxy-jwt',
  title: 'HAProxy, RS256 verified on every request',
  configuration: (port, setting) =>
    haproxyConfiguration(
      port,
      setting,
      `
  http-request set-var(txn.bearer) http_auth_bearer
  http-request set-var(txn.alg) var(txn.bearer),jwt_header_query('$.alg')
  http-request deny deny_status 401 unless { var(txn.alg) -m str RS256 }
  http-request deny deny_status 401 unless { var(txn.bearer),jwt_verify(txn.alg,"${setting.publicKeyFile}") 1 }
  http-request set-var(txn.sub) var(txn.bearer),jwt_payload_query('$.sub')
  http-request set-header x-user %[var(txn.sub)]`,
    ),
}

function haproxyConfiguration(port: number, { upstreamPort, connections }: Setting, rules: string): string {
  return `
global
  nbthread 1
  maxconn ${connections + 100}
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  http-reuse always
frontend in
  bind 127.0.0.1:${port}${rules}
  default_backend up
backend up
  server s1 127.0.0.1:${upstreamPort}
`
}

/** All of them, whether they are installed or not. */
export const INSTALLED_PEERS: readonly Row[] = [NGINX, HAPROXY, HAPROXY_JWT].map(rowOf)

function rowOf({ name, title, program, configuration, args }: Tool): Row {
  return {
    name,
    title,
    version() {
      const { stdout, stderr, error } = spawnSync(program, ['-v'], { encoding: 'utf8' })
      return error === undefined ? (/\d+\.\d+(?:\.\d+)*/.exec(`${stdout}${stderr}`)?.[0] ?? 'of no known version') : null
    },
    async start(setting) {
      const { folder } = setting
      const port = await freePort()
      const file = join(folder, `${program}.conf`)
      writeFileSync(file, configuration(port, setting))
      const { gone, ...started } = startProgram([program, ...args(file, folder)], folder, 'inherit')
      return Promise.race([listening({ ...started, port }), gone.then((error) => Promise.reject(error))])
    },
  }
}

async function listening(proxy: Proxy): Promise<Proxy> {
  for (let time = 0; time < LOOK.times; time += 1) {
    const socket = connect(proxy.port, '127.0.0.1')
    const isThere = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
    })
    socket.destroy()
    if (isThere) return proxy
    await new Promise((resolve) => setTimeout(resolve, LOOK.every))
  }
  throw new Error(`nothing listens on port ${proxy.port}`)
}
