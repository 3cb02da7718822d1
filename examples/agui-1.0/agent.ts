/** A self-hosted agent of AG-UI 1.0, with what that version brought: subagents, more outcomes, usage and answers to interrupts. */
import { setTimeout as pause } from 'node:timers/promises'
import { type Event, EventType, PROTOCOL_VERSION, type RunAgentInput } from '@ag-ui/core'
import { RunAgentInputSchema } from '@ag-ui/core/schemas'
import { EventEncoder } from '@ag-ui/encoder'
import { type Agent, type AgentOptions, type Protocol, serveAgent } from '../agent.ts'

/** Until a run that was told `slow` ends by itself. */
const SLOW_MS = 60_000

const AG_UI_1: Protocol<RunAgentInput, Event> = {
  // The schema keeps unknown keys.
  parse: (value) => RunAgentInputSchema.parse(value) as RunAgentInput,
  encoder: (accept) => new EventEncoder(accept === undefined ? {} : { accept }),
  run: (input, { user_id }, signal) => events(input, user_id, signal),
}

/** Starts the agent. What the user says chooses how a run ends: `interrupt`, `cancel`, `fail`, `slow`, or as usual. */
export function startModernAgent(options: AgentOptions): Promise<Agent<RunAgentInput>> {
  return serveAgent(options, AG_UI_1)
}

const USAGE = [{ provider: 'example', model: 'echo', inputTokens: 3, outputTokens: 5, totalTokens: 8 }]
const SUBAGENT = 'subagent-1'

async function* events(
  { threadId, runId, messages, resume }: RunAgentInput,
  user: string,
  signal: AbortSignal,
): AsyncGenerator<Event> {
  const run = { threadId, runId }
  const said = lastText(messages)
  yield { type: EventType.RUN_STARTED, ...run, protocolVersion: PROTOCOL_VERSION }
  if (said === 'slow') {
    await pause(SLOW_MS, undefined, { signal }).catch(() => undefined)
    return
  }
  if (resume !== undefined) {
    yield* text(`message-${runId}`, `Resumed with ${JSON.stringify(resume)}`)
    yield { type: EventType.RUN_FINISHED, ...run, outcome: { type: 'success' }, usage: USAGE }
    return
  }
  yield* text(`message-${runId}`, `Hello ${user}. You said: ${said}`)
  if (said === 'cancel') yield { type: EventType.RUN_FINISHED, ...run, outcome: { type: 'cancelled' }, usage: USAGE }
  else if (said === 'fail') yield* failure()
  else if (said === 'interrupt') yield* interrupt(run)
  else yield { type: EventType.RUN_FINISHED, ...run, usage: USAGE }
}

function* text(messageId: string, delta: string): Generator<Event> {
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: 'assistant' }
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta }
  yield { type: EventType.TEXT_MESSAGE_END, messageId }
}

function* interrupt(run: { readonly threadId: string; readonly runId: string }): Generator<Event> {
  const interrupts = [{ id: 'interrupt-1', reason: 'approval', message: 'Go on?', subagentRunId: SUBAGENT }]
  yield { type: EventType.SUBAGENT_STARTED, subagentRunId: SUBAGENT, name: 'researcher' }
  yield {
    type: EventType.SUBAGENT_FINISHED,
    subagentRunId: SUBAGENT,
    outcome: { type: 'suspended', interruptIds: ['interrupt-1'] },
  }
  yield { type: EventType.RUN_FINISHED, ...run, outcome: { type: 'interrupt', interrupts }, usage: USAGE }
}

function* failure(): Generator<Event> {
  yield { type: EventType.SUBAGENT_STARTED, subagentRunId: SUBAGENT, name: 'researcher' }
  yield { type: EventType.SUBAGENT_ERROR, subagentRunId: SUBAGENT, message: 'no source', code: 'no-source' }
  yield { type: EventType.RUN_ERROR, message: 'It failed.', code: 'failed', usage: USAGE }
}

function lastText(messages: RunAgentInput['messages']): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content
  return typeof content === 'string' ? content : ''
}
