/** The rows that are scripts: what a user of Node would otherwise write or pick. */
import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { join } from 'node:path'
import { startHelper } from '../processes.ts'
import type { Row } from './row.ts'

const peer = (name: string, title: string, version: () => string): Row => ({
  name,
  title,
  version,
  start: ({ upstreamPort, connections }) =>
    startHelper(join(import.meta.dirname, 'peers', `${name}.ts`), String(upstreamPort), String(connections)),
})

const packaged = (name: string) => (): string =>
  (JSON.parse(readFileSync(findPackageJSON(name, import.meta.url) ?? '', 'utf8')) as { version: string }).version

/** What everything is compared with. */
export const HTTP_PROXY = peer('http-proxy', '@fastify/http-proxy, passing through', packaged('@fastify/http-proxy'))

/** All of them. */
export const NODE_PEERS: readonly Row[] = [
  HTTP_PROXY,
  peer('node-http', 'node:http, piping', () => process.versions.node),
  peer('undici', 'undici dispatch, passing through', packaged('undici')),
]
