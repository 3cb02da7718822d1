/** The requests that a chat client sends, recorded as they leave it: the client core takes no fetch of its own. */
import { AsyncLocalStorage } from 'node:async_hooks'

/** A request of a client, and how it was answered. */
export interface Sent {
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly contentType: string | null
  readonly authorization: string | null
  /** The body as JSON; undefined if it is none. */
  readonly body: unknown
  /** The status of the answer; undefined until it has come, 0 if none came. */
  status?: number
  /** The answer as JSON; undefined if it is none. */
  json?: unknown
}

/** Whose requests they are goes along with everything that a client sets off, timers and promises included. */
const current = new AsyncLocalStorage<Sent[]>()
const send = globalThis.fetch

globalThis.fetch = async (input, init) => {
  const list = current.getStore()
  if (list === undefined) return send(input, init)
  const headers = new Headers(init?.headers)
  const { pathname, search } = new URL(input instanceof Request ? input.url : input)
  const sent: Sent = {
    method: init?.method ?? 'GET',
    target: pathname + search,
    contentType: headers.get('content-type'),
    authorization: headers.get('authorization'),
    body: typeof init?.body === 'string' ? parsed(init.body) : undefined,
  }
  list.push(sent)
  const answer = await send(input, init).catch((error: unknown) => {
    sent.status = 0
    throw error
  })
  if (answer.headers.get('content-type')?.startsWith('application/json') === true) sent.json = parsed(await answer.clone().text())
  sent.status = answer.status
  return answer
}

/** Does something whose requests are to be recorded in a list. */
export function recorded<T>(list: Sent[], action: () => T): T {
  return current.run(list, action)
}

/** What an envelope of the single-route transport asks for; undefined for other requests. */
export function asked({ body }: Sent): string | undefined {
  if (typeof body !== 'object' || body === null || !('method' in body) || typeof body.method !== 'string') return undefined
  return body.method
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
