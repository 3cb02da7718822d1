/** A gateway before a self-hosted agent, and people who are signed in. */
import type { Test } from 'tap'
import type { Agent, AgentOptions } from '../../examples/agent.ts'
import { startIssuer } from '../../examples/issuer.ts'
import { sayOnFailure } from '../../testing/support/decided.ts'
import { startDeployment } from '../../testing/support/deployment.ts'
import type { TestGateway } from '../../testing/support/gateway.ts'

export interface AgentScene<Input> {
  readonly gateway: TestGateway
  readonly agent: Agent<Input>
  readonly url: string
  readonly alice: string
  readonly bob: string
  readonly issuer: Awaited<ReturnType<typeof startIssuer>>
}

export async function startAgentScene<Input>(
  t: Test,
  startAgent: (options: AgentOptions) => Promise<Agent<Input>>,
): Promise<AgentScene<Input>> {
  const issuer = await startIssuer()
  const agent = await startAgent({ issuer: issuer.issuer, audience: issuer.audience })
  const gateway = await startDeployment('self-hosted-agent', { AGENT_URL: new URL(agent.url).origin, ISSUER_URL: issuer.issuer })
  sayOnFailure(t, gateway)
  t.teardown(async () => {
    await gateway.close()
    await agent.close()
    await issuer.close()
  })
  const [alice, bob] = await Promise.all([issuer.signIn('alice'), issuer.signIn('bob')])
  await gateway.ready()
  return { gateway, agent, url: `${gateway.url}/agents/research`, alice, bob, issuer }
}
