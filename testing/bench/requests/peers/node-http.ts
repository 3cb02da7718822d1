/** node:http on both sides, and a pipe between: what one writes by hand. Arguments: port of the upstream. */
import { Agent, createServer, request } from 'node:http'
import { isReady, upstreamOf } from './peer.ts'

const { port } = upstreamOf(process.argv)
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
const server = createServer((message, response) => {
  const { method, url, headers } = message
  const passed = request({ host: '127.0.0.1', port, method, path: url, headers, agent }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  passed.on('error', () => {
    response.statusCode = 502
    response.end()
  })
  if (method === 'GET') passed.end()
  else message.pipe(passed)
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => isReady(server))
