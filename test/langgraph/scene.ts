/** A gateway before a real LangGraph server, as its deployment configures it, and people with the client of the LangGraph SDK. */
import { createRequire } from 'node:module'
import { startIssuer } from '../../examples/issuer.ts'
import { GRAPH_ID, startLangGraph, type LangGraph } from '../../examples/langgraph.ts'
import { startDeployment } from '../../testing/support/deployment.ts'
import type { TestGateway } from '../../testing/support/gateway.ts'
import { OPERATOR } from '../../testing/support/sharing.ts'

export { GRAPH_ID }

/** What the tests use of the client; options and answers are those of the SDK. */
export interface Client {
  readonly threads: {
    create(options?: object): Promise<Thread>
    get(id: string): Promise<Thread>
    update(id: string, options: object): Promise<Thread>
    copy(id: string): Promise<Thread>
    delete(id: string): Promise<void>
    search(query?: object): Promise<readonly Thread[]>
    count(query?: object): Promise<number>
    getState(id: string, checkpoint?: unknown): Promise<State>
    updateState(id: string, options: object): Promise<unknown>
    getHistory(id: string, options?: object): Promise<readonly State[]>
  }
  readonly runs: {
    create(id: string | null, assistant: string, options?: object): Promise<Run>
    wait(id: string | null, assistant: string, options?: object): Promise<unknown>
    stream(id: string | null, assistant: string, options?: object): AsyncIterable<StreamPart>
    list(id: string, options?: object): Promise<readonly Run[]>
    get(id: string, run: string): Promise<Run>
    cancel(id: string, run: string, wait?: boolean): Promise<void>
    join(id: string, run: string): Promise<unknown>
    joinStream(id: string, run: string, options?: object): AsyncIterable<StreamPart>
    delete(id: string, run: string): Promise<void>
  }
  readonly assistants: {
    search(query?: object): Promise<readonly { readonly assistant_id: string; readonly graph_id: string }[]>
  }
  readonly store: { searchItems(namespace: readonly string[]): Promise<unknown> }
}

export interface Thread {
  readonly thread_id: string
  readonly status?: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly values?: Readonly<Record<string, unknown>>
}

export interface State {
  readonly values: Readonly<Record<string, unknown>>
  readonly next: readonly string[]
  readonly checkpoint: Readonly<Record<string, unknown>>
  readonly tasks: readonly { readonly interrupts: readonly { readonly id?: string; readonly value: unknown }[] }[]
}

export interface Run {
  readonly run_id: string
  readonly thread_id: string
  readonly status: string
}

export interface StreamPart {
  readonly id?: string
  readonly event: string
  readonly data: unknown
}

const sdk = createRequire(new URL('../../examples/langgraph/package.json', import.meta.url))
const { Client: SdkClient } = sdk('@langchain/langgraph-sdk') as { Client: new (options: object) => Client }

export interface LangGraphScene {
  readonly gateway: TestGateway
  readonly server: LangGraph
  readonly issuer: string
  /** Where callers find the server. */
  readonly url: string
  readonly signIn: (user: string) => Promise<string>
  /** The client of a user; without a token, one that asks the server itself. */
  readonly client: (token?: string) => Client
  readonly close: () => Promise<void>
}

export interface SceneOptions {
  /** The origin from which browsers may call. */
  readonly pageOrigin?: string
  /** The address of the service that a node of the graph asks. */
  readonly serviceUrl?: string
}

export async function startLangGraphScene(options: SceneOptions = {}): Promise<LangGraphScene> {
  const { pageOrigin = 'https://app.example.com', serviceUrl } = options
  const issuer = await startIssuer()
  const server = await startLangGraph(serviceUrl === undefined ? {} : { environment: { NOTES_SERVICE_URL: serviceUrl } })
  const gateway = await startDeployment('langgraph', {
    LANGGRAPH_URL: server.url,
    ISSUER_URL: issuer.issuer,
    PAGE_ORIGIN: pageOrigin,
    ADMIN_CREDENTIAL: OPERATOR,
  })
  await gateway.ready()
  const url = `${gateway.url}/graphs`
  return {
    gateway,
    server,
    issuer: issuer.issuer,
    url,
    signIn: (user) => issuer.signIn(user),
    client: (token) =>
      new SdkClient({
        apiUrl: token === undefined ? server.url : url,
        apiKey: null,
        callerOptions: { maxRetries: 0 },
        ...(token === undefined ? {} : { defaultHeaders: { authorization: `Bearer ${token}` } }),
      }),
    async close() {
      await gateway.close()
      await server.close()
      await issuer.close()
    },
  }
}
