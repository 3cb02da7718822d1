/** An agent in the process of the runtime: says what it was told, and `slow` for five seconds. Replace it with yours. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { AbstractAgent, type AGUIEvent, type BaseEvent, EventType, type RunAgentInput } from '@ag-ui/client'
import { from, type Observable } from 'rxjs'

export class EchoAgent extends AbstractAgent {
  readonly #stopped = new AbortController()

  /** The runtime clones an agent for each request. */
  override clone(): EchoAgent {
    return new EchoAgent({ agentId: this.agentId })
  }

  override abortRun(): void {
    this.#stopped.abort()
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    return from(this.#events(input))
  }

  async *#events({ threadId, runId, messages }: RunAgentInput): AsyncGenerator<AGUIEvent> {
    const said = messages.findLast(({ role }) => role === 'user')?.content
    const text = typeof said === 'string' ? said : ''
    const words = text === 'slow' ? Array.from({ length: 50 }, (_, at) => `${at + 1}`) : ['Echo:', ...text.split(' ')]
    const messageId = randomUUID()
    yield { type: EventType.RUN_STARTED, threadId, runId }
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: 'assistant' }
    for (const [at, word] of words.entries()) {
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: at === 0 ? word : ` ${word}` }
      await pause(text === 'slow' ? 100 : 5, undefined, { signal: this.#stopped.signal }).catch(() => undefined)
      if (this.#stopped.signal.aborted) break
    }
    yield { type: EventType.TEXT_MESSAGE_END, messageId }
    yield { type: EventType.RUN_FINISHED, threadId, runId }
  }
}
