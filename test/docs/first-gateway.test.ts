/** The tutorial "Your first gateway" is run as printed. */
import { statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'
import { fileOf, runBlocks } from './commands.ts'
import { ROOT } from './markdown.ts'

/** Servers of the page, and what each prints when it is ready. */
const SERVERS = [
  [/^npx node examples\/(?:issuer|runtime)\.ts --port/, /^http:\S+/m],
  [/^node_modules\/\.bin\/node src\/cli\.ts serve/, /"msg":"listening"/],
] as const

void test('your first gateway', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  for (const name of ['examples', 'node_modules', 'scripts', 'src']) symlinkSync(join(ROOT, name), join(folder, name))
  const { ran } = await runBlocks(t, 'docs/tutorials/first-gateway.md', {
    folder,
    ports: [4000, 9000],
    servers: SERVERS,
    exits: { '--token-file': 3 },
    after: async (block, { ports }) => {
      if (block.code.includes('bob.token')) {
        for (const file of ['my-gateway', 'my-gateway/bob.token'])
          t.equal(statSync(join(folder, file)).mode & 0o77, 0, `only the reader can read ${file}`)
      }
      if (fileOf(block)?.isPart !== true) return
      const metrics = `http://127.0.0.1:${ports.get(8081)}/metrics`
      await until(async () => (await (await fetch(metrics)).text()).includes('threadwarden_config_generation 2'))
    },
  })
  t.match(ran.find(({ command }) => command.includes('/agent/default/run'))?.output, 'RUN_FINISHED')
})
