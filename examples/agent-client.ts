/** A client of a self-hosted agent's endpoint, as applications have one that call it without a runtime. */
import { type AbstractAgent, HttpAgent, runHttpRequest, transformHttpEventStream } from '@ag-ui/client'
import type { BaseEvent, RunAgentInput } from '@ag-ui/core'
import { AGUI_MEDIA_TYPE, EventEncoder } from '@ag-ui/encoder'
import { lastValueFrom, toArray } from 'rxjs'

/** How an answer is asked for. */
export type Asked = 'events' | 'binary'

/** What it is called in `Accept`. */
export const MEDIA_TYPES: Readonly<Record<Asked, string>> = { events: 'text/event-stream', binary: AGUI_MEDIA_TYPE }

/** The client of `@ag-ui/client`, which can be told to ask for the binary event stream. */
class AgentClient extends HttpAgent {
  readonly #asked: Asked

  constructor(url: string, threadId: string, token: string, asked: Asked) {
    super({ url, threadId, headers: { authorization: `Bearer ${token}` } })
    this.#asked = asked
  }

  protected override requestInit(input: RunAgentInput): RequestInit {
    const init = super.requestInit(input)
    return { ...init, headers: { ...(init.headers as Record<string, string>), Accept: MEDIA_TYPES[this.#asked] } }
  }
}

/**
 * Makes one for a thread.
 * @param asked which stream it asks for
 */
export function agentClient(url: string, threadId: string, token: string, asked: Asked = 'events'): AbstractAgent {
  return new AgentClient(url, threadId, token, asked)
}

/** Reads a stream as that client does. */
export async function eventsIn(bytes: Uint8Array<ArrayBuffer>, asked: Asked): Promise<BaseEvent[]> {
  const answer = new Response(bytes, { headers: { 'content-type': MEDIA_TYPES[asked] } })
  return lastValueFrom(transformHttpEventStream(runHttpRequest(() => Promise.resolve(answer))).pipe(toArray()))
}

/** Writes an event as an agent does. */
export function eventBytes(event: BaseEvent, asked: Asked): Uint8Array {
  return new EventEncoder({ accept: MEDIA_TYPES[asked] }).encodeBinary(event)
}
