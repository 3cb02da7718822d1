/** People who share threads, over a real gateway: owners by the gateway's own route, operators by their API. */
import type { Test } from 'tap'
import { edited } from './policies.ts'
import { runInput, type Reply } from './client.ts'
import { gated, type GatedOptions, type GatedUpstream } from './gated.ts'
import { events, type Answering } from './upstream.ts'

const GRANTS = '    routes: [threads/grants]\n    allow: []\n'

/** The shipped policy, with leave for owners to share their threads. */
export const OWNERS_SHARE = edited(GRANTS, GRANTS.replace('[]', '[signed-in]'))

/** The same where operators may do so on foreign threads, too. */
export const OPERATORS_SHARE = edited(
  `${GRANTS}    threads: [own]\n`,
  `${GRANTS.replace('[]', '[signed-in]')}    threads: [own]\n
  - name: grants-of-others
    routes: [threads/grants]
    allow: [operator]
    threads: [foreign]\n`,
)

/** The credential of the admin API. */
export const OPERATOR = 'c'.repeat(40)

/** A gateway on which threads are shared. */
export interface Sharing extends GatedUpstream {
  /** A run on a thread: it is the caller's, if it was nobody's. */
  readonly run: (token: string, threadId?: string) => Promise<Reply>
  /** Asks the gateway's own route; with a body by POST, unless another method is named. */
  readonly grants: (token: string, body?: unknown, method?: string, threadId?: string) => Promise<Reply>
  /** The same by the admin API. */
  readonly operate: (body?: unknown, method?: string, threadId?: string) => Promise<Reply>
}

/** Starts it, with the admin API, where owners may share unless another policy is given. */
export async function sharing(t: Test, answering: Answering = events(), options: GatedOptions = {}): Promise<Sharing> {
  const gate = await gated(t, answering, {
    policy: OWNERS_SHARE,
    ...options,
    config: { admin: { port: 0, credential: OPERATOR }, ...options.config },
  })
  const { base, call, gateway } = gate
  const asked = (body: unknown, method: string | undefined, token: string) => ({
    body,
    token,
    ...(method === undefined ? {} : { method }),
    // No envelope reaches it.
    transport: 'multi-route' as const,
  })
  return {
    ...gate,
    run: (token, threadId = 't1') => call(`${base}/agent/default/run`, { token, body: runInput(threadId) }),
    grants: (token, body, method, threadId = 't1') =>
      call(`${base}/threadwarden/threads/${threadId}/grants`, asked(body, method, token)),
    operate: (body, method, threadId = 't1') =>
      call(`${gateway.adminUrl}/threads/${threadId}/grants`, asked(body, method, OPERATOR)),
  }
}

/** The reasons of the requests to the gateway's own route, as the log has them. */
export function reasons({ gateway }: Sharing): readonly unknown[] {
  return gateway.lines.filter(({ msg, route }) => msg === 'request' && route === 'threads/grants').map(({ reason }) => reason)
}
