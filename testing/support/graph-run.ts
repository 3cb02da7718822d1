/** Runs of the graph in `examples/langgraph`, which tells what it was given, as a frontend sees them. */
import type { Transport } from '../../src/core/route/transport.ts'
import { call, codeOf, runInput, type Reply } from './client.ts'

/** A message of a thread. */
export interface GraphMessage {
  readonly role: string
  readonly content: string
  readonly toolCalls?: readonly { readonly function: { readonly name: string } }[]
}

interface Event {
  readonly type: string
  readonly messages?: readonly GraphMessage[]
  readonly snapshot?: { readonly ran?: readonly string[] }
}

/** What the graph says it was given. */
export interface Seen {
  /** What the server's authentication handler says; undefined if there is none. */
  readonly user?: Readonly<Record<string, unknown>>
  /** The whole of its configuration. */
  readonly identity: Readonly<Record<string, unknown>>
  readonly context: unknown
  readonly role: string
  readonly tools: readonly string[]
}

/** A run when it is over. */
export interface GraphRun extends Reply {
  readonly threadId: string
  readonly code: unknown
  /** Whether it came to its end without an error. */
  readonly finished: boolean
  readonly messages: readonly GraphMessage[]
  readonly seen: Seen | undefined
  /** The nodes that ran in this thread. */
  readonly nodes: readonly string[]
  /** The frontend's tools that the graph calls. */
  readonly calls: readonly string[]
}

/** Where and with which words to run. */
export interface Turn {
  /** By default a new one. */
  readonly threadId?: string
  readonly text?: string
  readonly route?: string
  /** Multi-route. */
  readonly transport?: Transport
  /** Besides the usual ones. */
  readonly headers?: Record<string, string>
}

/**
 * Runs it.
 * @param agent where the routes of the agent are
 * @param token of who runs it; undefined for nobody
 * @param more what else stands in the body
 */
export async function runGraph(
  agent: string,
  token: string | undefined,
  more: Record<string, unknown> = {},
  turn: Turn = {},
): Promise<GraphRun> {
  const { threadId = crypto.randomUUID(), text = 'hello', route = 'run', transport = 'multi-route', headers = {} } = turn
  const credential = token === undefined ? {} : { token }
  const reply = await call(`${agent}/${route}`, { ...credential, headers, transport, body: runInput(threadId, text, more) })
  const events = [...reply.text.matchAll(/^data: (.*)$/gm)].map((line) => JSON.parse(line[1] ?? '') as Event)
  const last = (type: string): Event | undefined => events.findLast((event) => event.type === type)
  const messages = last('MESSAGES_SNAPSHOT')?.messages ?? []
  const said = messages.findLast(({ role, content }) => role === 'assistant' && content.startsWith('{'))
  return {
    ...reply,
    threadId,
    code: codeOf(reply),
    finished: events.at(-1)?.type === 'RUN_FINISHED' && last('RUN_ERROR') === undefined,
    messages,
    seen: said === undefined ? undefined : (JSON.parse(said.content) as Seen),
    nodes: last('STATE_SNAPSHOT')?.snapshot?.ran ?? [],
    calls: messages.flatMap(({ toolCalls = [] }) => toolCalls.map((one) => one.function.name)),
  }
}
