/** The plugin that the gateway is built on, passing everything through. Arguments: port of the upstream, connections to it. */
import proxy from '@fastify/http-proxy'
import { fastify } from 'fastify'
import { isReady, upstreamOf } from './peer.ts'

const { url, connections } = upstreamOf(process.argv)
const app = fastify({ logger: false })
void app.register(proxy, { upstream: url, undici: { connections, pipelining: 1 } })
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })
isReady(app.server)
