/** Requests as a chat frontend makes them. */
import type { Transport } from '../../src/core/route/transport.ts'
import { enveloped } from './enveloped.ts'

/** An answer, read to its end. */
export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON; undefined if it is none. */
  readonly json: unknown
}

/** What a request is made of. */
export interface Call {
  readonly method?: string
  readonly token?: string
  readonly headers?: Record<string, string>
  /** Sent as JSON. */
  readonly body?: unknown
  /** That of the client; `multi-route` by default. */
  readonly transport?: Transport
}

/** Sends a request and reads the answer. */
export async function call(url: string, options: Call = {}): Promise<Reply> {
  const { token, headers, transport = 'multi-route' } = options

  const { origin } = new URL(url)
  const text = options.body === undefined ? undefined : JSON.stringify(options.body)
  const plain = { method: options.method ?? (text === undefined ? 'GET' : 'POST'), target: url.slice(origin.length), body: text }
  const envelope = transport === 'multi-route' ? null : enveloped(plain)
  const { method, target, body } = envelope === null ? plain : { method: 'POST', ...envelope }
  const answer = await fetch(`${origin}${target}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
    redirect: 'manual',
  })
  const told = await answer.text()
  let json: unknown
  try {
    json = JSON.parse(told)
  } catch {
    json = undefined
  }
  return { status: answer.status, headers: answer.headers, text: told, json }
}

/** The body of a run, as the client sends it. */
export function runInput(threadId: unknown, text = 'hello', more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    threadId,
    runId: crypto.randomUUID(),
    state: {},
    messages: [{ id: crypto.randomUUID(), role: 'user', content: text }],
    tools: [],
    context: [],
    forwardedProps: {},
    ...more,
  }
}

/** The `code` of a refusal, undefined for other answers. */
export function codeOf(reply: Reply): unknown {
  return typeof reply.json === 'object' && reply.json !== null && 'code' in reply.json ? reply.json.code : undefined
}
