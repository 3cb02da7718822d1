/** The how-to "Install with npm" is run as printed, with the runtime and the provider of the examples. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { startIssuer } from '../../examples/issuer.ts'
import { clearThreads, startRuntime } from '../../examples/runtime.ts'
import { runBlocks } from './commands.ts'

void test('init, check and start', async (t) => {
  clearThreads()
  const issuer = await startIssuer()
  t.teardown(() => issuer.close())
  const runtime = await startRuntime()
  t.teardown(() => runtime.close())
  await runBlocks(t, 'docs/how-to/deploy/npm.md', {
    ports: { 4000: runtime.port },
    replace: { 'https://login.example.com/': issuer.issuer },
    // The command writes the default ports, which another gateway of this machine may use.
    after({ code }, { folder, replaced }) {
      if (!code.includes('threadwarden init')) return
      const file = join(folder, 'threadwarden.yaml')
      writeFileSync(file, replaced(readFileSync(file, 'utf8')))
    },
    files: { 'token.txt': await issuer.signIn('alice') },
  })
})
