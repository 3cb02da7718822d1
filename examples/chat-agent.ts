/** The self-hosted agent: what it says, and which tools it lets whom use. No model behind it. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { type AGUIEvent, EventType, type RunAgentInput } from '@ag-ui/core'
import type { AuthUser } from './agent-user.ts'
import { lastUserText, pieces } from './messages.ts'

/** Per request: who asks stands in here, so that nothing in the agent reads the token again. */
export interface AgentConfig {
  readonly configurable: { readonly auth_user: AuthUser }
}

/** A tool was asked for by somebody who may not use it. */
export class PermissionError extends Error {}

/** Between two pieces of text, so that one can see them come. */
const PAUSE_MS = 30

/** One of these is made for each request. */
export class ChatAgent {
  readonly #user: AuthUser

  constructor(config: AgentConfig) {
    this.#user = config.configurable.auth_user
  }

  /** Runs once: the events to stream. Ends early, without an error, when `signal` fires. */
  async *run(input: RunAgentInput, signal: AbortSignal): AsyncGenerator<AGUIEvent> {
    const { threadId, runId } = input
    const messageId = randomUUID()
    yield { type: EventType.RUN_STARTED, threadId, runId }
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: 'assistant' }
    for (const delta of pieces(this.#answer(lastUserText(input.messages)), 5)) {
      if (signal.aborted) return
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta }
      await pause(PAUSE_MS)
    }
    yield { type: EventType.TEXT_MESSAGE_END, messageId }
    yield { type: EventType.RUN_FINISHED, threadId, runId }
  }

  #answer(said: string): string {
    const { user_id, role } = this.#user
    const [word, ...rest] = said.trim().split(/\s+/)
    if (word !== '/admin') return `Hello ${user_id}${role === undefined ? '' : ` (${role})`}. You said: ${said}`
    try {
      return this.#admin(rest.includes('confirm'))
    } catch (error) {
      if (error instanceof PermissionError) return `Permission denied: ${error.message}`
      throw error
    }
  }

  /** A tool that isn't for everybody. Authorize, then confirm, then execute: nobody is asked to confirm what they may not do. */
  #admin(confirmed: boolean): string {
    if (!this.#user.permissions.includes('threads:operate')) {
      throw new PermissionError(`${this.#user.user_id} lacks threads:operate`)
    }
    if (!confirmed) return 'This does something only operators may do. To go on, say: /admin confirm'
    return `Done, on behalf of ${this.#user.user_id}.`
  }
}
