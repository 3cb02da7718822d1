/** Chat pages before a gateway before a runtime. */
import type { Test } from 'tap'
import { ChatCore, type ChatOptions } from '../../testing/support/chat-core.ts'
import { asked } from '../../testing/support/chat-requests.ts'
import { startStack, type People, type StackOptions, type Stack } from '../../testing/support/stack.ts'

/** Who speaks which transport. */
export interface Row {
  readonly client: ChatOptions['transport']
  readonly upstream: 'multi-route' | 'single-route'
}

export interface Scene {
  readonly stack: Stack
  /** Opens a page for somebody who is signed in, or with a token, or for nobody. */
  open(who?: keyof People | { readonly token: string }, agent?: string): Promise<ChatCore>
  /** Checks that everybody spoke the transport that the row is about: otherwise it would show nothing. */
  check(): Promise<void>
}

const BASE = '/api/copilotkit'

/**
 * Starts everything; it ends with the test.
 * @param options what differs from the usual
 */
export async function startScene(t: Test, { client, upstream }: Row, options: StackOptions = {}): Promise<Scene> {
  const stack = await startStack(t, { ...options, runtime: { mode: upstream, transcription: true, ...options.runtime } })
  const pages: ChatCore[] = []
  t.teardown(() => Promise.all(pages.map((page) => page.close())))
  return {
    stack,
    async open(who, agent) {
      const token = typeof who === 'string' ? stack.tokens[who] : who?.token
      const page = await ChatCore.open(stack.base, {
        transport: client,
        ...(token !== undefined && { token }),
        ...(agent !== undefined && { agent }),
      })
      pages.push(page)
      return page
    },
    async check() {
      await Promise.all(pages.map((page) => page.settled()))
      const sent = pages.flatMap((page) => page.sent)
      const enveloped = sent.filter((request) => request.method === 'POST' && request.target === BASE && asked(request))
      t.equal(enveloped.length, client === 'single' ? sent.length : 0, `of ${sent.length} requests of the client`)
      const { requests } = stack.runtime
      const routed = requests.filter(({ url }) => /\/(?:agent|threads|transcribe)/.test(url)).length
      const atBase = requests.filter(({ method, url }) => method === 'POST' && url === BASE).length
      const expected = upstream === 'single-route' ? routed === 0 && atBase > 10 : routed > 10 && atBase < 2
      t.ok(expected, `the runtime got ${routed} routes and ${atBase} envelopes`)
    },
  }
}
