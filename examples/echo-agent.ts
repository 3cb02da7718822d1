/** An agent inside the runtime's process that says what it was told. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { AbstractAgent, type AGUIEvent, type BaseEvent, EventType, type RunAgentInput } from '@ag-ui/client'
import { from, type Observable } from 'rxjs'
import { lastUserText, pieces } from './messages.ts'

/** What `slow` sends: so many pieces, one in so many milliseconds. */
const SLOW = { count: 50, everyMs: 100 } as const

/** Between two pieces of an echo: enough that they arrive one by one. */
const PAUSE_MS = 5

/**
 * Answers `Echo: <what the user said last>` in a few pieces. Told `slow`, it goes on for five seconds, unless
 * its run is stopped.
 */
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
    const copy = new EchoAgent(this.#closing)
    if (this.agentId !== undefined) copy.agentId = this.agentId
    return copy
  }

  override abortRun(): void {
    this.#stopped.abort()
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    return from(this.#events(input, AbortSignal.any([this.#closing, this.#stopped.signal])))
  }

  /**
   * A stopped run ends like any other, only sooner. If it left the closing to the runtime, that would write a
   * RUN_FINISHED without ids, which AG-UI clients refuse to read, then and at each replay.
   */
  async *#events({ threadId, runId, messages }: RunAgentInput, signal: AbortSignal): AsyncGenerator<AGUIEvent> {
    const said = lastUserText(messages)
    const slow = said.trim() === 'slow'
    const deltas = slow ? Array.from({ length: SLOW.count }, (_, at) => `${at + 1} `) : pieces(`Echo: ${said}`, 3)
    const messageId = randomUUID()
    yield { type: EventType.RUN_STARTED, threadId, runId }
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: 'assistant' }
    for (const delta of deltas) {
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta }
      await pause(slow ? SLOW.everyMs : PAUSE_MS, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) break
    }
    yield { type: EventType.TEXT_MESSAGE_END, messageId }
    yield { type: EventType.RUN_FINISHED, threadId, runId }
  }
}
