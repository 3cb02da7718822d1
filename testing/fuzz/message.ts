/**
 * Requests and responses of node:http without a socket or a parser in between. The objects are the real ones, so that
 * Fastify's, Express's and the runtime's code run on them as ever, and a target that the HTTP parser would refuse is
 * put before the gateway and the judge all the same.
 */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'

/** The versions that node's parser lets through; 0.9 is also that of a request line without one. */
export type HttpVersion = '0.9' | '1.0' | '1.1' | '2.0'

/** A request, as far as it is read from the wire. */
export interface Written {
  readonly method: string
  readonly target: string
  readonly httpVersion?: HttpVersion
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array | null
}

/** What node:http keeps to itself of a message; the parser calls it. */
interface WithLines {
  /** Node's own merging of repeated lines: first wins, or joined by commas. */
  _addHeaderLine(name: string, value: string, into: IncomingMessage['headers']): void
}

// Never connected. Nothing is written to it; one is enough.
const NOWHERE = new Socket()
NOWHERE.setMaxListeners(0)

/** The request as a server's listener gets it. */
export function incoming(written: Written): IncomingMessage {
  const message = new IncomingMessage(NOWHERE)
  const httpVersion = written.httpVersion ?? '1.1'
  Object.assign(message, {
    method: written.method,
    url: written.target,
    httpVersion,
    httpVersionMajor: 1,
    httpVersionMinor: Number(httpVersion.slice(2)),
  })
  for (const [name, value] of written.headers) {
    message.rawHeaders.push(name, value)
    ;(message as unknown as WithLines)._addHeaderLine(name, value, message.headers)
  }
  if (written.body !== null) message.push(written.body)
  message.push(null)
  message.complete = true
  return message
}

/** A response to it whose body goes nowhere; `ended` is called with the status. */
export function outgoing(message: IncomingMessage, ended: (status: number) => void): ServerResponse {
  const response = new ServerResponse(message)
  return Object.assign(response, {
    writeContinue: () => {},
    writeHead(status: number) {
      response.statusCode = status
      return response
    },
    write: () => true,
    end() {
      response.emit('finish')
      response.emit('close')
      ended(response.statusCode)
      return response
    },
  })
}
