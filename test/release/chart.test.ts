/** A packed chart has the layout of Helm, and depends on nothing but the files. */
import { chmodSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { list } from 'tar'
import { packChart } from '../../testing/release/chart.ts'
import { makeFolder } from '../../testing/support/gateway.ts'

const FILES = {
  'Chart.yaml': 'name: chat\n',
  'values.yaml': 'a: 1\n',
  'templates/deployment.yaml': 'kind: Deployment\n',
  'templates/_names.tpl': '',
  '.helmignore': '# a comment\n*.orig\n.DS_Store\n',
  'values.yaml.orig': '',
  'templates/.DS_Store': '',
}

function makeChart(
  t: Test,
  files: Readonly<Record<string, string>> = FILES,
): { readonly chart: string; readonly folder: string } {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const chart = join(folder, 'chat')
  mkdirSync(join(chart, 'templates'), { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(chart, name), text)
  return { chart, folder }
}

void test('Chart.yaml is first, in a folder with the name of the chart, without ignored files', async (t) => {
  const { chart, folder } = makeChart(t)
  const file = join(folder, 'chat.tgz')
  await packChart(chart, file, 1_700_000_000)
  const entries: { readonly path: string; readonly mode: number | undefined; readonly mtime: number | undefined }[] = []
  await list({ file, onReadEntry: ({ path, mode, mtime }) => entries.push({ path, mode, mtime: mtime?.getTime() }) })
  t.same(
    entries.map(({ path }) => path),
    ['chat/Chart.yaml', 'chat/templates/_names.tpl', 'chat/templates/deployment.yaml', 'chat/values.yaml'],
  )
  for (const { mode, mtime } of entries) t.same({ mode, mtime }, { mode: 0o644, mtime: 1_700_000_000_000 })
})

void test('other times and modes give the same bytes, other contents give others', async (t) => {
  const { chart, folder } = makeChart(t)
  await packChart(chart, join(folder, 'first.tgz'), 1)
  utimesSync(join(chart, 'values.yaml'), 5, 5)
  chmodSync(join(chart, 'values.yaml'), 0o664)
  await packChart(chart, join(folder, 'second.tgz'), 1)
  const bytes = (name: string): Buffer => readFileSync(join(folder, name))
  t.ok(bytes('first.tgz').equals(bytes('second.tgz')))
  writeFileSync(join(chart, 'values.yaml'), 'a: 2\n')
  await packChart(chart, join(folder, 'third.tgz'), 1)
  t.notOk(bytes('first.tgz').equals(bytes('third.tgz')))
})

void test('refused: a folder that is no chart, and patterns that Helm may read in another way', async (t) => {
  const none = makeChart(t, { 'values.yaml': '' })
  await t.rejects(packChart(none.chart, join(none.folder, 'chat.tgz'), 1), /has no Chart\.yaml/)
  for (const pattern of ['templates/tests', '!values.yaml']) {
    const { chart, folder } = makeChart(t, { ...FILES, '.helmignore': `${pattern}\n` })
    await t.rejects(packChart(chart, join(folder, 'chat.tgz'), 1), /only patterns of file names/)
  }
})
