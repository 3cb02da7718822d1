/** A gateway between signed-in people and an upstream that the test plays. */
import type { Test } from 'tap'
import { sayOnFailure } from './decided.ts'
import { startTestGateway, type ConfigTree, type TestGateway } from './gateway.ts'
import { MULTI_ROUTE, type Pair } from './pair.ts'
import { makeSigner, type Signer } from './tokens.ts'
import { startUpstream, type Answering, type Upstream } from './upstream.ts'

/**
 * Where nothing listens. The port of a server that was closed is no such place: whatever starts next may get it.
 */
export const NOWHERE = 'http://127.0.0.1:1'

/** Gateway and people. */
export interface Gated {
  readonly gateway: TestGateway
  /** The public base of the gateway's routes. */
  readonly base: string
  /** That of the gateway. */
  readonly call: TestGateway['call']
  readonly signer: Signer
  /** Tokens: two users and an operator. */
  readonly alice: string
  readonly bob: string
  readonly olga: string
}

/** With an upstream that records. */
export interface GatedUpstream extends Gated {
  readonly upstream: Upstream
}

/** What differs from the usual. */
export interface GatedOptions {
  /** `MULTI_ROUTE` by default. */
  readonly pair?: Pair | undefined
  readonly config?: ConfigTree
  readonly policy?: string
  /** The folder of another gateway, to share its store. */
  readonly shared?: string
  /** Whose tokens the gateway takes; by default those of a signer of its own. */
  readonly signer?: Signer
}

/**
 * Starts a gateway before an upstream that is there already. The transport is named, so that nothing waits for a probe.
 * When the test is over everything is closed, and no log line may hold a token.
 */
export async function gateBefore(t: Test, url: string, options: GatedOptions = {}): Promise<Gated> {
  const { pair = MULTI_ROUTE, signer = makeSigner(), policy, shared } = options
  const { upstream, ...config } = (options.config ?? {}) as { upstream?: object }
  const gateway = await startTestGateway(
    { authentication: signer.authentication, ...config, upstream: { url, transport: pair.upstream, ...upstream } },
    { pair, policy, shared },
  )
  sayOnFailure(t, gateway)
  t.teardown(async () => {
    await gateway.close()
    if (options.signer === undefined) signer.remove()
    const log = JSON.stringify(gateway.lines)
    if (signer.signed.some((token) => log.includes(token))) throw new Error('a log line holds a token')
  })
  const publicPath = upstream === undefined ? {} : (upstream as { publicPath?: string; basePath?: string })
  const path = publicPath.publicPath ?? publicPath.basePath ?? '/api/copilotkit'
  return {
    gateway,
    base: `${gateway.url}${path === '/' ? '' : path}`,
    call: gateway.call,
    signer,
    alice: signer.sign('alice'),
    bob: signer.sign('bob'),
    olga: signer.sign('olga', { role: 'operator' }),
  }
}

/** Starts an upstream and a gateway before it. */
export async function gated(t: Test, answering?: Answering, options: GatedOptions = {}): Promise<GatedUpstream> {
  const { basePath } = (options.config?.['upstream'] ?? {}) as { basePath?: string }
  const upstream = await startUpstream(answering, { pair: options.pair, basePath: basePath === '/' ? '' : basePath })
  t.teardown(() => upstream.close())
  return { upstream, ...(await gateBefore(t, upstream.url, options)) }
}
