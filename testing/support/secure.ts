/** The files of a listener with TLS, as an operator has them, and what a client knows of it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import type { Test } from 'tap'
import { dial } from './dial.ts'
import { makeFolder } from './gateway.ts'
import { makeAuthority, type Authority, type Issued } from './issuing.ts'

export interface SecureFiles {
  readonly folder: string
  readonly authority: Authority
  /** That of the client certificates. */
  readonly clients: Authority
  readonly server: Issued
  readonly tls: Readonly<Record<string, unknown>>
  /** With the clients' certificates required. */
  readonly mutual: Readonly<Record<string, unknown>>
  /** The part of a configuration. */
  readonly listen: (tls?: object) => { readonly listen: object }
  /** Replaces the pair, one file after the other. */
  readonly write: (issued: Issued) => void
  readonly path: (name: string) => string
}

export function secureFiles(t: Pick<Test, 'teardown'>): SecureFiles {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const authority = makeAuthority()
  const clients = makeAuthority('clients')
  const server = authority.issue({ name: 'first', usage: 'server' })
  const path = (name: string): string => join(folder, name)
  const write = ({ cert, key }: Issued): void => {
    writeFileSync(path('tls.crt'), cert)
    writeFileSync(path('tls.key'), key, { mode: 0o600 })
  }
  write(server)
  writeFileSync(path('clients.crt'), clients.cert)
  const tls = { certificateFile: path('tls.crt'), keyFile: path('tls.key') }
  return {
    folder,
    authority,
    clients,
    server,
    tls,
    mutual: { ...tls, clientCertificates: { ca: path('clients.crt') } },
    listen: (more = tls) => ({ listen: { host: '127.0.0.1', port: 0, tls: more } }),
    write,
    path,
  }
}

/** The name in the certificate that a listener presents to a client that verifies it. */
export async function presentedAt(url: string, authority: Authority, options: ConnectionOptions = {}): Promise<string> {
  const socket = (await dial(url, { ca: authority.cert, rejectUnauthorized: true, ...options })) as TLSSocket
  const { subject } = socket.getPeerCertificate()
  socket.destroy()
  return String(subject.CN)
}
