/** The how-to "Put the gateway in front of your runtime" is run as printed, with the runtime and the provider of the examples. */
import { test } from 'tap'
import { startIssuer } from '../../examples/issuer.ts'
import { clearThreads, startRuntime } from '../../examples/runtime.ts'
import { runBlocks } from './commands.ts'

void test('in front of a runtime', async (t) => {
  clearThreads()
  const issuer = await startIssuer()
  t.teardown(() => issuer.close())
  const runtime = await startRuntime()
  t.teardown(() => runtime.close())
  const { ran } = await runBlocks(t, 'docs/how-to/deploy/in-front-of-a-runtime.md', {
    ports: { 4000: runtime.port },
    replace: { 'https://login.example.com/': issuer.issuer },
    env: { TOKEN: await issuer.signIn('alice') },
  })
  const [asked] = ran
  t.match(asked?.output, /^\{"version":"1\.75\.0".*"agents":/)
  t.match(ran.at(-1)?.output, 'gateway')
})
