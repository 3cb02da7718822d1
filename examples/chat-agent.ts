/** The self-hosted agent: what it says, and which tools it lets whom use. No model behind it. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { type AGUIEvent, EventType, type RunAgentInput } from '@ag-ui/core'
import { type AgentUser, PermissionDenied } from '../src/sdk/agent/index.ts'
import { lastUserText, pieces } from './messages.ts'
import { type Tool, useTool } from './tool.ts'

/** Per request: who asks stands in here, so that nothing in the agent reads the token again. */
export interface AgentConfig {
  readonly configurable: { readonly auth_user: AgentUser }
}

/** A tool for operators; it does nothing but say so. */
const ADMIN: Tool = {
  permission: 'threads:operate',
  question: 'This does something only operators may do. To go on, say: /admin confirm',
  execute: ({ user_id }) => `Done, on behalf of ${user_id}.`,
}

/** Between two pieces of text, so that one can see them come. */
const PAUSE_MS = 30

/** One of these is made for each request. */
export class ChatAgent {
  readonly #user: AgentUser
  readonly #admin: Tool

  /** @param admin what `/admin` does */
  constructor(config: AgentConfig, admin = ADMIN) {
    this.#user = config.configurable.auth_user
    this.#admin = admin
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
      return useTool(this.#admin, this.#user, rest.includes('confirm'))
    } catch (error) {
      if (error instanceof PermissionDenied) return `Permission denied: ${error.message}`
      throw error
    }
  }
}
