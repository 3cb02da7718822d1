/** The real clients, encoders and agents of the versions of AG-UI that the gateway is for. */
import { startAgent, type Agent, type AgentOptions } from '../../examples/agent.ts'
import { agentClient, eventBytes, eventsIn, type Asked } from '../../examples/agent-client.ts'
import { startModernAgent } from '../../examples/agui-1.0/agent.ts'
import { modernClient, modernEventBytes, modernEventsIn } from '../../examples/agui-1.0/client.ts'

/** An event, whatever the version. */
export interface AnyEvent {
  readonly type: string
  readonly [key: string]: unknown
}

/** What is used here of a client. */
export interface AnyClient {
  messages: { id: string; role: 'user'; content: string }[]
  runAgent(parameters?: {
    readonly resume?: readonly object[]
  }): Promise<{ readonly newMessages: readonly { readonly content?: unknown }[] }>
}

/** The real parts of a version. */
export interface AgUi {
  readonly startAgent: (options: AgentOptions) => Promise<Agent<Record<string, unknown>>>
  readonly client: (url: string, thread: string, token: string, asked: Asked) => AnyClient
  readonly eventsIn: (bytes: Uint8Array<ArrayBuffer>, asked: Asked) => Promise<readonly AnyEvent[]>
  readonly eventBytes: (event: AnyEvent, asked: Asked) => Uint8Array
}

export const VERSIONS = ['0.0.59', '1.0'] as const

export const AG_UI: Readonly<Record<(typeof VERSIONS)[number], AgUi>> = {
  '0.0.59': { startAgent, client: agentClient, eventsIn, eventBytes } as unknown as AgUi,
  '1.0': {
    startAgent: startModernAgent,
    client: modernClient,
    eventsIn: modernEventsIn,
    eventBytes: modernEventBytes,
  } as unknown as AgUi,
}
