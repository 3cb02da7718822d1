/** On a Node that is too old the program says so in one line, before it imports anything that such a Node could not read. */
import { test } from 'tap'
import { run } from '../../testing/support/program.ts'

const withNode = (version: string): string =>
  `data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"${version}"}})`

const runOn = (version: string, args: readonly string[]) => run(args, { node: ['--import', withNode(version)] })

for (const version of ['22.18.0', '22.0.0', '20.20.2', '18.0.0']) {
  void test(`Node ${version} is too old, whatever is asked for`, async (t) => {
    const stderr = `threadwarden needs Node 22.19 or newer; this is ${version}. In a clone, use \`npx node\`: npm ci installs a newer one\n`
    const ended = await Promise.all([['--version'], ['serve', '--config', 'x'], []].map((args) => runOn(version, args)))
    t.same(ended, Array(3).fill({ code: 1, stdout: '', stderr }))
  })
}

void test('Node 22.19 and newer are not', async (t) => {
  const ended = await Promise.all(['22.19.0', '24.0.0', '100.0.0'].map((version) => runOn(version, ['--version'])))
  for (const one of ended) t.match(one, { code: 0, stderr: '' })
})
