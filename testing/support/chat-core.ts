/** A chat page without its page: the real client core in this process, made to do what a user's clicks make it do. */
import { CopilotKitCore, CopilotKitCoreRuntimeConnectionStatus, createThreadStore } from '../../examples/client.ts'
import { recorded, type Sent } from './chat-requests.ts'
import { codeOf, type Reply } from './client.ts'
import { transcribe } from './transcribe.ts'
import { until } from './until.ts'

// The core connects in browsers only, and this is what it takes for one.
Object.assign(globalThis, { window: globalThis })

/** What the core reported to its page. */
export interface Reported {
  readonly code: string
  /** The status of the answer behind it; undefined if there is none. */
  readonly status: unknown
  /** The `code` of the gateway's refusal behind it. */
  readonly refusal: unknown
  readonly message: string
}

/** A message in words. */
export interface Said {
  readonly role: string
  readonly text: string
}

export interface ChatOptions {
  /** Without one nobody is signed in. */
  readonly token?: string
  readonly transport: 'auto' | 'rest' | 'single'
  /** `default` by default. */
  readonly agent?: string
}

/** What a drawer of threads shows. */
export interface DrawerContext {
  readonly limit?: number
  readonly includeArchived?: boolean
}

type ThreadStore = ReturnType<typeof createThreadStore>

const AGENT = 'default'

/** A chat page that is open. Its requests and errors stay readable after `close`. */
export class ChatCore {
  readonly core: CopilotKitCore
  readonly #agentId: string
  readonly sent: Sent[] = []
  readonly errors: Reported[] = []

  private constructor(base: string, { token, transport, agent = AGENT }: ChatOptions) {
    this.#agentId = agent
    this.core = new CopilotKitCore({
      runtimeUrl: base,
      runtimeTransport: transport,
      // As React's provider does, so that nothing is reported before somebody listens.
      deferInitialConnection: true,
      headers: token === undefined ? {} : bearer(token),
    })
    this.core.subscribe({
      onError: ({ code, error }) => {
        const { status, payload } = error as { status?: unknown; payload?: unknown }
        this.errors.push({ code, status, refusal: codeOf({ json: payload } as Reply), message: error.message })
      },
    })
  }

  /** Opens a page and waits until it is connected, or has reported why it is not. */
  static async open(base: string, options: ChatOptions): Promise<ChatCore> {
    const chat = new ChatCore(base, options)
    chat.#do(() => chat.core.connect())
    await until(() => chat.connected || chat.errors.length > 0)
    return chat
  }

  get connected(): boolean {
    return this.core.runtimeConnectionStatus === CopilotKitCoreRuntimeConnectionStatus.Connected
  }

  /** What is said in a thread, after a run that has ended. */
  async say(threadId: string, text: string): Promise<Said[]> {
    const agent = this.#agent(threadId)
    agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: text })
    await this.#do(() => this.core.runAgent({ agent }))
    return this.said(threadId)
  }

  /** What was said in a thread, as a page finds out that is opened on it. */
  async replay(threadId: string): Promise<Said[]> {
    const agent = this.#agent(threadId)
    await this.#do(() => this.core.connectAgent({ agent }))
    return this.said(threadId)
  }

  /** What this page shows of a thread. */
  said(threadId: string): Said[] {
    return this.#agent(threadId).messages.map(({ role, content }) => ({ role, text: typeof content === 'string' ? content : '' }))
  }

  /** The stop button. The core waits for no answer; this waits for it. */
  async stop(threadId: string): Promise<Sent> {
    const agent = this.#agent(threadId)
    const before = this.sent.length
    this.#do(() => this.core.stopAgent({ agent }))
    await until(() => this.sent[before]?.status !== undefined)
    return this.sent[before]!
  }

  /** Asks for suggestions once; what the echo says has none in it, so it's the request that counts. */
  async suggest(threadId: string): Promise<Sent> {
    this.#agent(threadId)
    const before = this.sent.length
    const config = this.core.addSuggestionsConfig({ instructions: 'Be brief.', available: 'always' })
    this.#do(() => this.core.reloadSuggestions(AGENT))
    await until(() => this.sent[before]?.status !== undefined && !this.core.getSuggestions(AGENT).isLoading)
    this.core.removeSuggestionsConfig(config)
    return this.sent[before]!
  }

  /** The ids that the drawer of threads shows. */
  async threads(): Promise<string[]> {
    return this.drawer((store) => Promise.resolve(store.getState().threads.map(({ id }) => id)))
  }

  /** Renames, archives and deletes a thread by the drawer's menu; what came of each. */
  async change(threadId: string): Promise<Record<'rename' | 'archive' | 'unarchive' | 'delete', string>> {
    return this.drawer(async (store) => ({
      rename: await outcome(store.renameThread(threadId, 'A name')),
      archive: await outcome(store.archiveThread(threadId)),
      unarchive: await outcome(store.unarchiveThread(threadId)),
      delete: await outcome(store.deleteThread(threadId)),
    }))
  }

  /** Opens a drawer of threads, as React's `useThreads` does, and uses it after its list has come. */
  async drawer<T>(use: (store: ThreadStore) => Promise<T>, context: DrawerContext = {}): Promise<T> {
    return this.#do(async () => {
      const store = createThreadStore({ fetch: this.core.ɵruntimeFetch })
      store.start()
      const { runtimeUrl = '', headers } = this.core
      store.setContext({ runtimeUrl, headers: { ...headers }, agentId: AGENT, ...context })
      await until(() => !store.getState().isLoading)
      const { error } = store.getState()
      if (error !== null) throw error
      const result = await use(store)
      store.stop()
      return result
    })
  }

  /** Reads what is below the runtime's URL through the core's fetch, which puts it into an envelope if need be. */
  async read(path: string): Promise<{ readonly status: number; readonly json: unknown }> {
    const answer = await this.#do(() =>
      this.core.ɵruntimeFetch(`${this.core.runtimeUrl ?? ''}${path}`, { headers: { ...this.core.headers } }),
    )
    return { status: answer.status, json: await answer.json() }
  }

  /** The microphone: some bytes of sound. */
  async dictate(bytes: number): Promise<{ readonly status: number; readonly json: unknown }> {
    return this.#do(() => transcribe(this.core, new Blob([new Uint8Array(bytes)], { type: 'audio/webm' })))
  }

  /** What an application does that has got another token. */
  renew(token: string): void {
    this.core.setHeaders(bearer(token))
  }

  /** Until every request has been answered: the core asks whether the runtime is still there after each refusal. */
  async settled(): Promise<void> {
    await until(() => this.sent.every(({ status }) => status !== undefined))
  }

  async close(): Promise<void> {
    await this.settled()
    this.core.setRuntimeUrl(undefined)
  }

  #do<T>(action: () => T): T {
    return recorded(this.sent, action)
  }

  /** The page's agent, turned to a thread. */
  #agent(threadId: string) {
    const agent = this.core.getAgent(this.#agentId)
    if (agent === undefined) throw new Error('the page has no agent')
    if (agent.threadId !== threadId) {
      agent.threadId = threadId
      agent.setMessages([])
    }
    return agent
  }
}

function bearer(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}` }
}

function outcome(change: Promise<void>): Promise<string> {
  return change.then(
    () => 'done',
    (error: unknown) => (error as Error).message,
  )
}
