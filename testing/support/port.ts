/** The ports of a part that is tested by itself. */
import { Readable } from 'node:stream'
import { streamedBody } from '../../src/http/upstream/answer-body.ts'
import type { Upstream, UpstreamAnswer } from '../../src/http/upstream/upstream.ts'

/** A port of which the part uses only these methods: it fails by name when it uses another. */
export function portOf<Port extends object>(methods: Partial<Port>): Port {
  const get = (_: Port, name: string | symbol): unknown => {
    // `await` looks for `then`, and an assertion for symbols.
    if (name in methods || name === 'then' || typeof name === 'symbol') return methods[name as keyof Port]
    throw new Error(`${name} of a port is used, which the test does not give`)
  }
  return new Proxy<Port>(methods as Port, { get })
}

/** An upstream without a network. */
export function upstreamOf(send: Upstream['send']): Upstream {
  return { send, retire: async () => {}, close: async () => {} }
}

/** An answer of such an upstream. */
export function answerOf(
  status: number,
  body: Readable | string = Readable.from([]),
  headers: UpstreamAnswer['headers'] = {},
): UpstreamAnswer {
  const text = typeof body === 'string' ? Readable.from([Buffer.from(body)]) : body
  return { outcome: 'answered', status, headers, body: streamedBody(text) }
}
