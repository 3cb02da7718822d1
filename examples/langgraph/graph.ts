/**
 * A graph without a model that answers with its input: user, context, state and tools. Like many graphs, it trusts its input,
 * because its author expects the runtime to be the only caller.
 */
import { AIMessage } from '@langchain/core/messages'
import {
  END,
  interrupt,
  type LangGraphRunnableConfig,
  MessagesValue,
  ReducedValue,
  START,
  StateGraph,
  StateSchema,
} from '@langchain/langgraph'
import { z } from 'zod'

/** A tool of the frontend, as the runtime's agent forwards it. */
const tool = z.object({ name: z.string(), function: z.object({ description: z.string() }) })

const Notes = new StateSchema({
  messages: MessagesValue,
  /** The user's role. An author would expect that only an earlier node sets it. */
  role: z.string().default('member'),
  /** Filled in by the runtime's agent. */
  tools: z.array(tool).default([]),
  /** The nodes that ran in this thread, in order. */
  ran: new ReducedValue(z.array(z.string()).default([]), { reducer: (before, more) => [...before, ...more] }),
})

/** An instruction in a tool's description, which a model would follow. */
const ORDER = /must call this tool/i

/** Answers with its input, and calls a tool whose description instructs it to. */
function answer({ role, tools }: typeof Notes.State, config: LangGraphRunnableConfig): typeof Notes.Update {
  const told = tools.filter((one) => ORDER.test(one.function.description))
  // The user from the server's authentication handler. Without a handler, the caller sets this value.
  const user: unknown = config.configurable?.['langgraph_auth_user']
  const seen = {
    user,
    identity: config.configurable,
    context: config.context ?? {},
    role,
    tools: tools.map(({ name }) => name),
  }
  const message = new AIMessage({
    content: JSON.stringify(seen, withoutInner),
    tool_calls: told.map(({ name }) => ({ id: `call-${name}`, name, args: { notes: 'what only the agent knows' } })),
  })
  return { ran: ['answer'], messages: [message] }
}

/** For administrators; the way here leads past `whereTo`. */
function administer(): typeof Notes.Update {
  return { ran: ['administer'], messages: [new AIMessage('administered')] }
}

/** Waits for a person, and answers with what they said. */
function approve(): typeof Notes.Update {
  const answer: unknown = interrupt({ message: 'May it be done?' })
  return { ran: ['approve'], messages: [new AIMessage(`the answer is ${JSON.stringify(answer)}`)] }
}

/** Asks a service that may take its time, and answers with what it says. Its address is in the environment. */
async function lookUp(_state: typeof Notes.State, config: LangGraphRunnableConfig): Promise<typeof Notes.Update> {
  // No checkpoint has this: a client that joins the run again gets it from the events that the server keeps.
  config.writer?.({ progress: 'asking the service' })
  const service = process.env['NOTES_SERVICE_URL']
  const found = service === undefined ? 'nothing, because there is no service' : await (await fetch(service)).text()
  return { ran: ['lookUp'], messages: [new AIMessage(`found ${found}`)] }
}

/** Writes down what was done. */
function audit(): typeof Notes.Update {
  return { ran: ['audit'] }
}

/** Words of the user after which a person has to approve. */
const SENSITIVE = /needs approval/i

/** Words of the user that the service is asked about. */
const ELSEWHERE = /look it up/i

function whereTo({ role, messages }: typeof Notes.State): 'administer' | 'approve' | 'lookUp' | 'audit' {
  if (role === 'admin') return 'administer'
  const said = messages.findLast((message) => message.type === 'human')?.text ?? ''
  if (SENSITIVE.test(said)) return 'approve'
  return ELSEWHERE.test(said) ? 'lookUp' : 'audit'
}

/** Leaves out what the server keeps in there for itself. */
function withoutInner(key: string, value: unknown): unknown {
  return key.startsWith('__') ? undefined : value
}

export const graph = new StateGraph(Notes)
  .addNode('answer', answer)
  .addNode('administer', administer)
  .addNode('approve', approve)
  .addNode('lookUp', lookUp)
  .addNode('audit', audit)
  .addEdge(START, 'answer')
  .addConditionalEdges('answer', whereTo, ['administer', 'approve', 'lookUp', 'audit'])
  .addEdge('administer', 'audit')
  .addEdge('approve', 'audit')
  .addEdge('lookUp', 'audit')
  .addEdge('audit', END)
  .compile()
