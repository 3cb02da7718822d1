/** The specification's table "Errors", with the answers that callers get through the gateway. */
import { createSign, generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startRuntime } from '../../examples/runtime.ts'
import { codeOf, runInput } from '../../testing/support/client.ts'
import { makeFolder, startTestGateway } from '../../testing/support/gateway.ts'
import { sayOnFailure } from '../../testing/support/decided.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { startStack } from '../../testing/support/stack.ts'

void testFirstPair('401, 403, 404, 422 and 204, as the table says', async (t, pair) => {
  const stack = await startStack(t, { pair })
  const { alice, bob, olga } = stack.tokens
  const id = crypto.randomUUID()
  await stack.call(`${stack.base}/agent/default/run`, { token: alice, body: runInput(id) })

  const none = await stack.call(`${stack.base}/threads`)
  t.same([none.status, codeOf(none)], [401, 'credential-missing'], '401: the header is absent')
  const noPrefix = await stack.call(`${stack.base}/threads`, { headers: { authorization: alice } })
  t.same([noPrefix.status, codeOf(noPrefix)], [401, 'credential-invalid'], '401: without the prefix')
  const invalid = await stack.call(`${stack.base}/threads`, { token: 'not-a-token' })
  t.same([invalid.status, codeOf(invalid)], [401, 'credential-invalid'], '401: the token is invalid')

  t.equal((await stack.call(`${stack.base}/threads/${id}/messages`, { token: bob })).status, 403, '403: not the owner')
  t.equal((await stack.call(`${stack.base}/threads/${id}/events`, { token: bob })).status, 404, '404: the guard on events')
  t.equal((await stack.call(`${stack.base}/threads/${id}/state`, { token: bob })).status, 404, '404: the guard on state')
  t.equal(
    (await stack.call(stack.base, { token: alice, body: { method: 'agent/walk' } })).status,
    404,
    '404: what neither transport has; the gateway bridges single-route against multi-route',
  )
  const update = await stack.call(`${stack.base}/threads/${id}`, {
    method: 'PATCH',
    token: alice,
    body: { agentId: 'default', name: 'x' },
  })
  t.equal(update.status, 422, '422: what this runner does not serve')
  t.equal((await stack.call(`${stack.base}/threads/clear`, { method: 'POST', token: olga })).status, 204, '204: cleared')
})

void testFirstPair('400: the credential resolves to a malformed id, and 401 where it has merely expired', async (t, pair) => {
  const { folder, remove } = makeFolder()
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048, publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' } }) // oxfmt-ignore
  writeFileSync(join(folder, 'issuer.pem'), publicKey)
  const token = (claims: object): string => {
    const [head, body] = [
      { alg: 'RS256', typ: 'JWT' },
      { iss: 'https://issuer.test', aud: 'chat', exp: 4_000_000_000, ...claims },
    ].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    return `${head}.${body}.${createSign('RSA-SHA256').update(`${head}.${body}`).sign(privateKey, 'base64url')}`
  }
  const runtime = await startRuntime({ mode: pair.upstream })
  const issuer = {
    issuer: 'https://issuer.test',
    audiences: ['chat'],
    algorithms: ['RS256'],
    publicKeyFile: join(folder, 'issuer.pem'),
  }
  const gateway = await startTestGateway(
    { upstream: { url: runtime.url }, authentication: { issuers: { corp: issuer } } },
    { pair },
  )
  sayOnFailure(t, gateway)
  t.teardown(async () => {
    await gateway.close()
    await runtime.close()
    remove()
  })
  await gateway.ready()
  const ask = (claims: object) => gateway.call(`${gateway.url}/api/copilotkit/info`, { token: token(claims) })

  t.equal((await ask({ sub: 'alice' })).status, 200)
  for (const sub of [undefined, null, '', 7, ['alice'], 'a\u0000b', 'x'.repeat(256)]) {
    const answer = await ask({ sub })
    t.same([answer.status, codeOf(answer)], [400, 'user-id-invalid'], `sub ${String(sub).slice(0, 12)}`)
  }
  const expired = await ask({ sub: 'alice', exp: 1_000_000_000 })
  t.same([expired.status, codeOf(expired)], [401, 'credential-expired'])
  t.match(expired.headers.get('www-authenticate'), /error="invalid_token"/)
})
