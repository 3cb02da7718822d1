/** An agent inside the runtime's process that says what it was told, made of the parts that this runtime goes with. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { AbstractAgent, type BaseEvent, EventType, type RunAgentInput } from '@ag-ui/client'
import { from, type Observable } from 'rxjs'

/** Answers `Echo: <what the last message says>`. Told `endless`, it goes on until its run is stopped. */
export class EchoAgent extends AbstractAgent {
  readonly #closing: AbortSignal
  readonly #stopped = new AbortController()

  /** @param closing ends all runs of this agent and of its clones */
  constructor(closing: AbortSignal) {
    super({ description: 'Says what it was told.' })
    this.#closing = closing
  }

  /** The runtime clones an agent for each request, so each clone must be able to stop by itself. */
  override clone(): EchoAgent {
    return new EchoAgent(this.#closing)
  }

  override abortRun(): void {
    this.#stopped.abort()
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    return from(events(input, AbortSignal.any([this.#closing, this.#stopped.signal])))
  }
}

async function* events({ threadId, runId, messages }: RunAgentInput, signal: AbortSignal): AsyncGenerator<BaseEvent> {
  const content = messages.at(-1)?.content
  const said = typeof content === 'string' ? content : ''
  const messageId = randomUUID()
  yield event(EventType.RUN_STARTED, { threadId, runId })
  yield event(EventType.TEXT_MESSAGE_START, { messageId, role: 'assistant' })
  yield event(EventType.TEXT_MESSAGE_CONTENT, { messageId, delta: `Echo: ${said}` })
  if (said === 'endless' && !signal.aborted) await once(signal, 'abort')
  yield event(EventType.TEXT_MESSAGE_END, { messageId })
  yield event(EventType.RUN_FINISHED, { threadId, runId })
}

function event(type: EventType, fields: Record<string, unknown>): BaseEvent {
  return { type, ...fields }
}
