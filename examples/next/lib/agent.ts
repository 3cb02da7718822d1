/** An agent in the process of the runtime: says what it was told, and told `endless`, it counts. Replace it with yours. */
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
    const endless = text === 'endless'
    const words = endless ? counted() : ['Echo: ', ...text.split(/(?<= )/)]
    const messageId = randomUUID()
    yield { type: EventType.RUN_STARTED, threadId, runId }
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: 'assistant' }
    for (const delta of words) {
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta }
      await pause(endless ? 100 : 5, undefined, { signal: this.#stopped.signal }).catch(() => undefined)
      if (this.#stopped.signal.aborted) break
    }
    yield { type: EventType.TEXT_MESSAGE_END, messageId }
    yield { type: EventType.RUN_FINISHED, threadId, runId }
  }
}

function* counted(): Generator<string> {
  for (let number = 1; ; number += 1) yield `${number} `
}
