/** The graph of the fuzzed server: it repeats its input, and has a graph inside that waits for an answer. */
import { loadPackage } from './packages.ts'

interface Message {
  readonly text: string
}
interface State {
  readonly messages: readonly Message[]
}
interface Builder {
  addNode(name: string, node: unknown): Builder
  addEdge(from: string, to: string): Builder
  compile(): object
}
interface LangGraph {
  readonly StateGraph: new (state: unknown) => Builder
  readonly MessagesAnnotation: unknown
  readonly START: string
  readonly END: string
  readonly interrupt: (question: unknown) => unknown
}

const { StateGraph, MessagesAnnotation, START, END, interrupt } = await loadPackage<LangGraph>(
  '@langchain/langgraph/dist/index.js',
)

/** After this word, the graph asks. */
export const ASKS = 'ask me'

const inner = new StateGraph(MessagesAnnotation)
  .addNode('ask', ({ messages }: State) =>
    messages.some(({ text }) => text.includes(ASKS)) ? { messages: [{ role: 'user', content: String(interrupt('what?')) }] } : {},
  )
  .addEdge(START, 'ask')
  .addEdge('ask', END)
  .compile()

export const graph = new StateGraph(MessagesAnnotation)
  .addNode('answer', ({ messages }: State) => ({ messages: [{ role: 'assistant', content: `${messages.length}` }] }))
  .addNode('inner', inner)
  .addEdge(START, 'answer')
  .addEdge('answer', 'inner')
  .addEdge('inner', END)
  .compile()
