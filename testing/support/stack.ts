/** The real parts around a gateway: the real runtime, the real OpenID provider, and people who are signed in. */
import type { Test } from 'tap'
import type { Agent } from '../../examples/agent.ts'
import { startIssuer } from '../../examples/issuer.ts'
import { clearThreads, startRuntime, type Runtime, type RuntimeOptions, type RuntimeRequest } from '../../examples/runtime.ts'
import { AG_UI, type VERSIONS } from './agui-versions.ts'
import { sayOnFailure } from './decided.ts'
import { startDeployment } from './deployment.ts'
import { startTestGateway, type ConfigTree, type TestGateway } from './gateway.ts'
import { MULTI_ROUTE, type Pair } from './pair.ts'

/** Who is signed in. */
export interface People {
  readonly alice: string
  readonly bob: string
  readonly olga: string
}

/** Everything that is running. */
export interface Stack {
  readonly gateway: TestGateway
  readonly runtime: Runtime
  /** The self-hosted agent behind the runtime's agent `remote`. */
  readonly agent: Pick<Agent<Record<string, unknown>>, 'requests'>
  readonly issuer: string
  /** Their access tokens. */
  readonly tokens: People
  /** The public base of the gateway's routes. */
  readonly base: string
  /** That of the gateway. */
  readonly call: TestGateway['call']
  close(): Promise<void>
}

/** What differs from the usual. */
export interface StackOptions {
  /** `MULTI_ROUTE` by default. */
  readonly pair?: Pair
  readonly config?: ConfigTree
  readonly policy?: string
  readonly runtime?: RuntimeOptions
  /** The AG-UI of the self-hosted agent; 0.0.59 by default. */
  readonly agent?: (typeof VERSIONS)[number]
  /** A ready configuration in place of the usual one, with what its references name besides issuer and runtime. */
  readonly deployment?: { readonly name: string; readonly environment?: Readonly<Record<string, string>> }
}

/** What was asked for callers: what the gateway asks on its own account, at any time, has no request id. */
export function ofCallers(requests: readonly RuntimeRequest[]): readonly RuntimeRequest[] {
  return requests.filter(({ headers }) => 'x-request-id' in headers)
}

/** Starts a stack for one test: it ends with the test, and a failing assertion says what its gateway has decided. */
export async function startStack(t: Test, options: StackOptions = {}): Promise<Stack> {
  const stack = await startSharedStack(options)
  sayOnFailure(t, stack.gateway)
  t.teardown(() => stack.close())
  return stack
}

/** Starts runtime, issuer and gateway, and signs everybody in. Each test that uses it calls `sayOnFailure`. */
export async function startSharedStack(options: StackOptions = {}): Promise<Stack> {
  clearThreads()
  const { pair = MULTI_ROUTE } = options
  const issuer = await startIssuer()
  const agent = await AG_UI[options.agent ?? '0.0.59'].startAgent({ issuer: issuer.issuer, audience: issuer.audience })
  const runtime = await startRuntime({ agentUrl: agent.url, mode: pair.upstream, ...options.runtime })
  const { upstream, ...config } = (options.config ?? {}) as { upstream?: object }
  const { deployment } = options
  const gateway = await (deployment === undefined
    ? startTestGateway(
        {
          authentication: { issuers: { corp: { issuer: issuer.issuer, audiences: [issuer.audience], algorithms: ['RS256'] } } },
          ...config,
          upstream: { url: runtime.url, ...upstream },
        },
        { pair, policy: options.policy, runtime },
      )
    : startDeployment(deployment.name, { ISSUER_URL: issuer.issuer, RUNTIME_URL: runtime.url, ...deployment.environment }))
  const [alice, bob, olga] = await Promise.all([issuer.signIn('alice'), issuer.signIn('bob'), issuer.signIn('olga')])
  await gateway.ready()
  return {
    gateway,
    runtime,
    agent,
    issuer: issuer.issuer,
    tokens: { alice, bob, olga },
    base: `${gateway.url}/api/copilotkit`,
    call: gateway.call,
    async close() {
      await gateway.close()
      await runtime.close()
      await agent.close()
      await issuer.close()
    },
  }
}
