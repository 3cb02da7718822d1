/**
 * node:http on one side and undici on the other, with no stream between: the least that Node can do for a request that it passes
 * on. It holds nobody back, either: a slow reader costs memory. Arguments: port of the upstream, connections to it.
 */
import { createServer } from 'node:http'
import { Pool } from 'undici'
import { isReady, upstreamOf } from './peer.ts'

const { url, connections } = upstreamOf(process.argv)
const pool = new Pool(url, { connections, pipelining: 1 })
const server = createServer((message, response) => {
  const { method = 'GET', url: path = '/', headers } = message
  pool.dispatch(
    { method, path, headers, body: method === 'GET' ? null : message },
    {
      onRequestStart() {},
      onResponseError() {
        if (!response.headersSent) response.statusCode = 502
        response.end()
      },
      onResponseStart(_controller, status, fields) {
        response.writeHead(status, fields)
      },
      onResponseData(_controller, chunk) {
        response.write(chunk)
      },
      onResponseEnd() {
        response.end()
      },
    },
  )
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => isReady(server))
