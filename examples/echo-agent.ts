/** An agent inside the runtime's process that says what it was told. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { AbstractAgent, type AGUIEvent, type BaseEvent, EventType, type RunAgentInput } from '@ag-ui/client'
import { from, type Observable } from 'rxjs'
import { attachedBytes, lastUserText, pieces } from './messages.ts'

/** What is sent instead of an echo: so many numbers, one in `EVERY_MS`. */
const NUMBERS: ReadonlyMap<string, number> = new Map([
  ['slow', 50],
  ['endless', Infinity],
])

const EVERY_MS = 100

/** What the client asks to be called with what could be said next. */
const SUGGEST = 'copilotkitSuggest'

/** Between two pieces of an echo: enough that they arrive one by one. */
const PAUSE_MS = 5

/**
 * Answers `Echo: <what the user said last>` in a few pieces, with how much was attached. Told `slow`, it goes on for five
 * seconds, and told `endless`, for ever, unless its run is stopped. Asked for suggestions, it suggests to be slow.
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
  async *#events(input: RunAgentInput, signal: AbortSignal): AsyncGenerator<AGUIEvent> {
    const { threadId, runId } = input
    yield { type: EventType.RUN_STARTED, threadId, runId }
    if (isForSuggestions(input)) yield* suggestions()
    else yield* this.#answer(input, signal)
    yield { type: EventType.RUN_FINISHED, threadId, runId }
  }

  async *#answer({ messages }: RunAgentInput, signal: AbortSignal): AsyncGenerator<AGUIEvent> {
    const said = lastUserText(messages)
    const numbers = NUMBERS.get(said.trim())
    const bytes = attachedBytes(messages)
    const echo = `Echo: ${said}${bytes === 0 ? '' : ` (with ${bytes} bytes)`}`
    const deltas = numbers === undefined ? pieces(echo, 3) : counted(numbers)
    const messageId = randomUUID()
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: 'assistant' }
    for (const delta of deltas) {
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta }
      await pause(numbers === undefined ? PAUSE_MS : EVERY_MS, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) break
    }
    yield { type: EventType.TEXT_MESSAGE_END, messageId }
  }
}

function* counted(to: number): Generator<string> {
  for (let number = 1; number <= to; number += 1) yield `${number} `
}

function isForSuggestions({ forwardedProps }: RunAgentInput): boolean {
  const { toolChoice } = (forwardedProps ?? {}) as { toolChoice?: { function?: { name?: unknown } } }
  return toolChoice?.function?.name === SUGGEST
}

function* suggestions(): Generator<AGUIEvent> {
  const toolCallId = randomUUID()
  const delta = JSON.stringify({ suggestions: [{ title: 'Be slow', message: 'slow' }] })
  yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: SUGGEST }
  yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta }
  yield { type: EventType.TOOL_CALL_END, toolCallId }
}
