/** Stands before a server, passes everything on as it is, and tells what arrived there. */
import { createServer, request as ask, type IncomingHttpHeaders } from 'node:http'
import { listen, stop } from '../../examples/http.ts'

/** A relay. */
export interface Relay {
  /** Its origin. */
  readonly url: string
  /** What went through, oldest first. Set its length to 0 to forget it. */
  readonly requests: { readonly method: string; readonly url: string; readonly headers: IncomingHttpHeaders }[]
  close(): Promise<void>
}

/** Starts one on a free port. */
export async function startRelay(target: string): Promise<Relay> {
  const { hostname, port, host } = new URL(target)
  const requests: Relay['requests'] = []
  const server = createServer((incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming
    requests.push({ method, url, headers })
    const onward = ask({ hostname, port, method, path: url, headers: { ...headers, host } }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward)
  })
  const { origin } = await listen(server, 0, '127.0.0.1')
  return { url: origin, requests, close: () => stop(server) }
}
