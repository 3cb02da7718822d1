/** The chart of a release is the one that Helm would pack, and Helm reads it. */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { list } from 'tar'
import { packChart } from '../../testing/release/chart.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ROOT } from '../suites/suites.ts'
import { STANDALONE } from './cases.ts'
import { runTool, TOOLS } from './tools.ts'

const CHART = join(ROOT, 'deploy/helm/threadwarden')

async function filesOf(file: string): Promise<readonly string[]> {
  const found: string[] = []
  await list({ file, onReadEntry: ({ path }) => found.push(path) })
  return found.toSorted()
}

for (const { name, helm } of TOOLS) {
  void test(`packed as by Helm (${name})`, async (t) => {
    const { folder, remove } = makeFolder()
    t.teardown(remove)
    const file = join(folder, 'packed.chart.tgz')
    await packChart(CHART, file, 1_700_000_000)
    t.match(runTool(helm, ['package', CHART, '--destination', join(folder, 'helm')], folder), { code: 0 })
    const [byHelm] = readdirSync(join(folder, 'helm'))
    t.same(await filesOf(file), await filesOf(join(folder, 'helm', byHelm!)))
    writeFileSync(join(folder, 'values.json'), JSON.stringify(STANDALONE))
    const rendered = (chart: string) => runTool(helm, ['template', 'chat', chart, '--values', 'values.json'], folder)
    t.match(rendered(file), { code: 0, stdout: /^kind: Deployment$/m })
    t.same(rendered(file), rendered(CHART))
    t.match(runTool(helm, ['show', 'chart', file], folder), { code: 0, stdout: /^name: threadwarden$/m })
  })
}
