/**
 * A graph without a model that tells what it was given: as whom it works, with which context, state and tools. It
 * believes what stands there, as graphs do whose authors take the runtime in front for the only caller.
 */
import { AIMessage } from '@langchain/core/messages'
import {
  END,
  type LangGraphRunnableConfig,
  MessagesValue,
  ReducedValue,
  START,
  StateGraph,
  StateSchema,
} from '@langchain/langgraph'
import { z } from 'zod'

/** A tool of the frontend, as the runtime's agent hands it on. */
const tool = z.object({ name: z.string(), function: z.object({ description: z.string() }) })

const Notes = new StateSchema({
  messages: MessagesValue,
  /** What the user may; set by nobody but an earlier node, one would think. */
  role: z.string().default('member'),
  /** Filled in by the runtime's agent. */
  tools: z.array(tool).default([]),
  /** The nodes that ran in this thread, in order. */
  ran: new ReducedValue(z.array(z.string()).default([]), { reducer: (before, more) => [...before, ...more] }),
})

/** What a tool's description says to a model that believes it. */
const ORDER = /must call this tool/i

/** Answers with what it was given, and calls the tool that it is told to call. */
function answer({ role, tools }: typeof Notes.State, config: LangGraphRunnableConfig): typeof Notes.Update {
  const told = tools.filter((one) => ORDER.test(one.function.description))
  // What the server's authentication handler returned: who is asking. Without a handler it is whatever a caller says.
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

/** For administrators; the way here leads past `mayAdminister`. */
function administer(): typeof Notes.Update {
  return { ran: ['administer'], messages: [new AIMessage('administered')] }
}

/** Writes down what was done. */
function audit(): typeof Notes.Update {
  return { ran: ['audit'] }
}

function mayAdminister(state: typeof Notes.State): 'administer' | 'audit' {
  return state.role === 'admin' ? 'administer' : 'audit'
}

/** Leaves out what the server keeps in there for itself. */
function withoutInner(key: string, value: unknown): unknown {
  return key.startsWith('__') ? undefined : value
}

export const graph = new StateGraph(Notes)
  .addNode('answer', answer)
  .addNode('administer', administer)
  .addNode('audit', audit)
  .addEdge(START, 'answer')
  .addConditionalEdges('answer', mayAdminister, ['administer', 'audit'])
  .addEdge('administer', 'audit')
  .addEdge('audit', END)
  .compile()
