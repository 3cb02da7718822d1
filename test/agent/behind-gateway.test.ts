/** The real gateway's assertion, through the real runtime, to the example's agent, which believes nothing else. */
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { startAgent } from '../../examples/agent.ts'
import { startRuntime } from '../../examples/runtime.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { gateBefore } from '../../testing/support/gated.ts'
import { makeFolder } from '../../testing/support/gateway.ts'

const ISSUER = 'https://chat.example.com'
const AUDIENCE = 'agents'

void test('an agent knows who asks by the gateway’s word alone, and gates its tools by it', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const keyFile = join(folder, 'assertion.pem')
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const keys = [publicKey.export({ format: 'jwk' })]
  const agent = await startAgent({ issuer: ISSUER, audience: AUDIENCE, assertion: { issuer: ISSUER, audience: AUDIENCE, keys } })
  t.teardown(() => agent.close())
  const runtime = await startRuntime({ agentUrl: agent.url })
  t.teardown(() => runtime.close())
  const assertion = { keyFiles: [keyFile], issuer: ISSUER, audience: AUDIENCE }
  const config = { identity: { assertion }, upstream: { forwardAuthorization: false } }
  const { base, alice, signer } = await gateBefore(t, runtime.url, { config })

  const say = async (token: string, text: string): Promise<string> => {
    const { text: stream } = await call(`${base}/agent/remote/run`, { token, body: runInput(crypto.randomUUID(), text) })
    return Array.from(stream.matchAll(/"delta":"([^"]*)"/g), (match) => match[1]).join('')
  }
  t.match(await say(alice, 'hello'), /Hello corp:alice/)
  t.match(await say(alice, '/admin confirm'), /Permission denied: corp:alice/)
  const olga = signer.sign('olga', { permissions: ['threads:operate'] })
  t.notMatch(await say(olga, '/admin'), /Done/, 'a question comes first')
  t.match(await say(olga, '/admin confirm'), /Done, on behalf of corp:olga/)
  const direct = await call(`${runtime.url}/api/copilotkit/agent/remote/run`, { token: alice, body: runInput('t-1', 'hello') })
  t.notMatch(direct.text, /Hello/, 'past the gateway there is no assertion, and a token is none')
})
