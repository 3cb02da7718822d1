/** Requests as a chat frontend makes them. */

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
}

/** Sends a request and reads the answer. */
export async function call(url: string, options: Call = {}): Promise<Reply> {
  const { method, token, headers, body } = options
  const answer = await fetch(url, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    redirect: 'manual',
  })
  const text = await answer.text()
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    json = undefined
  }
  return { status: answer.status, headers: answer.headers, text, json }
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
