/** A client of AG-UI 1.0, as applications have one that call an agent without a runtime. */
import { HttpAgent, runHttpRequest, transformHttpEventStream } from '@ag-ui/client'
import type { BaseEvent, RunAgentInput } from '@ag-ui/core'
import { EventEncoder } from '@ag-ui/encoder'
import { lastValueFrom, toArray } from 'rxjs'
import { type Asked, MEDIA_TYPES } from '../agent-client.ts'

/** The client of `@ag-ui/client`, which can be told to ask for the binary event stream. */
class ModernClient extends HttpAgent {
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

/** Makes one for a thread. */
export function modernClient(url: string, threadId: string, token: string, asked: Asked): HttpAgent {
  return new ModernClient(url, threadId, token, asked)
}

/** Reads a stream as that client does. */
export async function modernEventsIn(bytes: Uint8Array<ArrayBuffer>, asked: Asked): Promise<BaseEvent[]> {
  const answer = new Response(bytes, { headers: { 'content-type': MEDIA_TYPES[asked] } })
  return lastValueFrom(transformHttpEventStream(runHttpRequest(() => Promise.resolve(answer))).pipe(toArray()))
}

/** Writes an event as an agent does. */
export function modernEventBytes(event: BaseEvent, asked: Asked): Uint8Array {
  return new EventEncoder({ accept: MEDIA_TYPES[asked] }).encodeBinary(event)
}
