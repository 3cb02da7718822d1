/** docs/how-to/authorize/sharing.md: its commands run against a gateway with a thread of alice's. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { stringify } from 'yaml'
import { serving } from '../../testing/support/program.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { OPERATOR, OWNERS_SHARE } from '../../testing/support/sharing.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { until } from '../../testing/support/until.ts'
import { events, INFO, json, startUpstream } from '../../testing/support/upstream.ts'
import { runBlocks } from './commands.ts'

void test('each command of the page works, and changes who can read the thread', async (t) => {
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.answer((request, response) => {
    if (request.target.endsWith('/info')) void json(INFO)(request, response)
    else if (request.target.endsWith('/messages')) void json({ messages: [] })(request, response)
    else void events({ type: 'RUN_FINISHED' })(request, response)
  })
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'threadwarden.yaml')
  writeFileSync(join(folder, 'policy.yaml'), OWNERS_SHARE)
  const configuration = {
    version: 1,
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    admin: { port: 0, credential: OPERATOR },
    upstream: { url: upstream.url, basePath: '/api/copilotkit' },
    authentication: signer.authentication,
    ownership: { unknownThread: 'claim' },
    policy: './policy.yaml',
  }
  writeFileSync(file, stringify(configuration))
  const gateway = await serving(t, file)
  await until(async () => (await fetch(`${String(gateway.listening['health'])}/readyz`)).ok)
  const url = String(gateway.listening['url'])
  const [alice, bob] = [signer.sign('alice'), signer.sign('bob')]
  const started = await call(`${url}/api/copilotkit/agent/default/run`, { token: alice, body: runInput('t-1') })
  t.equal(started.status, 200)
  const bobReads = async () => (await call(`${url}/api/copilotkit/threads/t-1/messages`, { token: bob })).status
  t.equal(await bobReads(), 403)

  const { ran } = await runBlocks(t, 'docs/how-to/authorize/sharing.md', {
    folder,
    env: { CREDENTIAL: OPERATOR, TOKEN: alice, BOB: bob },
    replace: { 'https://chat.example.com': url, 'http://127.0.0.1:9090': String(gateway.listening['admin']) },
    before: async ({ section, info }, { ran: done }) => {
      if (section === 'Operators' && info === 'sh' && done.length === 1) t.equal(await bobReads(), 403, 'revoked by the command')
    },
  })
  const [cli, admin, owner, left] = ran.map(({ output }) => output)
  t.match(cli, /corp:bob/)
  t.match(admin, /"group":"corp:support","right":"write","grantedBy":"operator"/)
  t.match(owner, /"user":"corp:bob","right":"read","grantedBy":"corp:alice"/)
  t.match(left, /"user":"corp:bob"/)
  t.equal(await bobReads(), 403, 'bob has left')
  t.equal((await gateway.end('SIGTERM')).code, 0)
})
