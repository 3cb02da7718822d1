/** A caller of whom only the body is looked at: what a stream is passed on to, and no head. */
import type { ServerResponse } from 'node:http'
import type { Writable } from 'node:stream'
import type { Caller } from '../../src/http/upstream/open-answers.ts'

/** @param lengths takes what is said of the length at each head that would be written */
export function callerOf(response: Writable, lengths: (number | undefined)[] = []): Caller {
  return {
    response: responseOver(response),
    head: (length) => void lengths.push(length),
    takePlace: null,
    budget: null,
    onEnded: () => {},
  }
}

/**
 * A response whose body is this stream. A response of node:http writes to a socket; the stream lets a test end, break or block
 * the response without one, and has no head.
 */
export function responseOver(body: Writable): ServerResponse {
  return body as unknown as ServerResponse
}
