/** Starts Debian's nginx, HAProxy and Caddy by the files of deploy/proxies, or by changed ones. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { SERVER } from '../../testing/support/certificates.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'
import { ROOT } from '../suites/suites.ts'

const FILES = { nginx: 'nginx.conf', haproxy: 'haproxy.cfg', caddy: 'Caddyfile' } as const
export type Name = keyof typeof FILES
export const NAMES = Object.keys(FILES) as Name[]

/** What an operator replaces in the shipped file; each of them has to be there. */
interface Places {
  readonly port: number
  readonly gateway: string
  readonly health: string
}

function filledIn(name: Name, folder: string, { port, gateway, health }: Places): string {
  const changes: Readonly<Record<Name, readonly (readonly [string, string])[]>> = {
    nginx: [
      ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
      ['server 127.0.0.1:8080', `server ${gateway}`],
    ],
    haproxy: [
      ['bind :443', `bind 127.0.0.1:${port}`],
      ['server one 127.0.0.1:8080 check port 8081', `server one ${gateway} check port ${health}`],
    ],
    caddy: [
      ['\nchat.example.com {', `\nhttps://127.0.0.1:${port} {`],
      ['reverse_proxy 127.0.0.1:8080', `reverse_proxy ${gateway}`],
    ],
  }
  return [...changes[name], ['/etc/ssl/threadwarden', folder] as const].reduce(
    (shipped, [from, to]) => {
      if (!shipped.includes(from)) throw new Error(`${FILES[name]} has no ${from}`)
      return shipped.replaceAll(from, to)
    },
    readFileSync(`${ROOT}deploy/proxies/${FILES[name]}`, 'utf8'),
  )
}

/** The file that includes the shipped one, and the command. */
const STARTS: Readonly<Record<Name, (folder: string) => { readonly around: string; readonly args: readonly string[] }>> = {
  nginx: (folder) => ({
    around: `user root; worker_processes 1; error_log stderr; pid ${folder}/nginx.pid; events {}
http { access_log off; ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((one) => `${one}_temp_path ${folder}/${one};`).join(' ')}
include ${folder}/shipped; }`,
    args: ['-p', folder, '-c', `${folder}/around`, '-g', 'daemon off;'],
  }),
  haproxy: (folder) => ({ around: '', args: ['-db', '-f', `${folder}/shipped`] }),
  caddy: (folder) => ({
    around: `{\n\tadmin off\n\tauto_https disable_redirects\n}\nimport ${folder}/shipped\n`,
    args: ['run', '--adapter', 'caddyfile', '--config', `${folder}/around`],
  }),
}

/** @param change of the shipped file, which must have an effect */
export async function startProxy(
  t: Test,
  name: Name,
  gateway: string,
  health: string,
  change: (shipped: string) => string = (shipped) => shipped,
): Promise<number> {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  chmodSync(folder, 0o755)
  mkdirSync(join(folder, 'home'))
  writeFileSync(join(folder, 'fullchain.pem'), SERVER.cert)
  writeFileSync(join(folder, 'privkey.pem'), SERVER.key)
  writeFileSync(join(folder, 'chat.pem'), SERVER.cert + SERVER.key)
  const port = await freePort()
  writeFileSync(join(folder, 'shipped'), change(filledIn(name, folder, { port, gateway, health })))
  const { around, args } = STARTS[name](folder)
  writeFileSync(join(folder, 'around'), around)
  const environment = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: join(folder, 'home') }
  const child: ChildProcess = spawn(name, args, { env: environment, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const said = text(child.stderr!)
  const failed = ended.then(async () => Promise.reject(new Error(`${name} ended: ${await said}`)))
  failed.catch(() => {})
  await Promise.race([failed, until(() => isListening(port))])
  return port
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectTcp(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
